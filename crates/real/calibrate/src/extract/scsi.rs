//! Address translation of SCSI disks: the translate-address page of SEND DIAGNOSTIC and RECEIVE
//! DIAGNOSTIC RESULTS (SBC, page 40h). Vendors' manuals describe the page: Seagate's Medalist Pro
//! 2160N, section 3.6, and HGST's Ultrastar C15K600, 18.40.3.
//!
//! Byte 0 is the page code. Bytes 2-3 are the length of the rest. Byte 4 is the supplied format.
//! Byte 5 is the translated format, in the answer with flags above. Addresses of 8 bytes follow
//! from byte 6 on. A physical sector is a cylinder of 3 bytes, a head of 1 byte and a sector of 4
//! bytes, all big-endian. A [`Transport`] carries commands to a device: [`ScsiGeneric`], or
//! another.

mod generic;

pub use self::generic::ScsiGeneric;
use crate::extract::machine::PhysicalPlace;
use fullstroke_device::scsi::CommandError;
use fullstroke_units::{Cylinder, Lbn};
use thiserror::Error;

/// Page code, and lengths of the header and of one address in bytes.
const PAGE: u8 = 0x40;
const HEADER: usize = 6;
const ADDRESS: usize = 8;
/// Formats of an address: a logical block of 32 bits, a logical block of 64 bits, a physical
/// sector.
const SHORT_BLOCK: u8 = 0b000;
const LONG_BLOCK: u8 = 0b011;
const PHYSICAL_SECTOR: u8 = 0b101;
const FORMAT_MASK: u8 = 0b111;

/// The device's answer is no translation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PageError {
    /// The answer has too few bytes.
    #[error("found {found} bytes; expected at least {expected}")]
    Short {
        /// Number of bytes of the answer.
        found: usize,
        /// Least number of bytes.
        expected: usize,
    },
    /// The answer is another page.
    #[error("found page {found:#04x}; expected {PAGE:#04x}")]
    Page {
        /// Code of the page.
        found: u8,
    },
    /// The answer has another format.
    #[error("found format {found:#05b}; expected a physical sector, 0b101")]
    Format {
        /// Code of the format.
        found: u8,
    },
    /// The command to the device failed.
    #[error(transparent)]
    Transport(#[from] CommandError),
}

/// Carries the two commands to a device.
pub trait Transport {
    /// Sends SEND DIAGNOSTIC with this parameter list (PF set).
    ///
    /// # Errors
    /// If the device refuses.
    fn send_diagnostic(&mut self, parameters: &[u8]) -> Result<(), CommandError>;

    /// Sends RECEIVE DIAGNOSTIC RESULTS for at most `bytes_max` bytes.
    ///
    /// # Errors
    /// If the device refuses.
    fn receive_diagnostic(&mut self, bytes_max: u16) -> Result<Vec<u8>, CommandError>;
}

/// Returns the place of `lbn`, as the device reports it.
///
/// # Errors
/// If the device refuses, or sends another answer.
pub fn ask(transport: &mut dyn Transport, lbn: Lbn) -> Result<PhysicalPlace, PageError> {
    transport.send_diagnostic(&request(lbn))?;
    let answer = transport.receive_diagnostic(64)?;
    answered(&answer)
}

/// Returns the parameter list that asks for the physical sector of a logical block.
pub fn request(lbn: Lbn) -> [u8; HEADER + ADDRESS] {
    let mut page = [0; HEADER + ADDRESS];
    page[0] = PAGE;
    page[3] = (HEADER - 4 + ADDRESS) as u8;
    page[5] = PHYSICAL_SECTOR;
    match u32::try_from(lbn.0) {
        Ok(short) => {
            page[4] = SHORT_BLOCK;
            page[6..10].copy_from_slice(&short.to_be_bytes());
        }
        Err(_) => {
            page[4] = LONG_BLOCK;
            page[6..].copy_from_slice(&lbn.0.to_be_bytes());
        }
    }
    page
}

/// Returns the first physical sector of an answer, because a block may cover several.
///
/// # Errors
/// If `page` is no such answer.
pub fn answered(page: &[u8]) -> Result<PhysicalPlace, PageError> {
    let expected = HEADER + ADDRESS;
    if page.len() < expected {
        return Err(PageError::Short {
            found: page.len(),
            expected,
        });
    }
    if page[0] != PAGE {
        return Err(PageError::Page { found: page[0] });
    }
    let length = 4 + usize::from(u16::from_be_bytes([page[2], page[3]]));
    if length < expected {
        return Err(PageError::Short {
            found: length,
            expected,
        });
    }
    let format = page[5] & FORMAT_MASK;
    if format != PHYSICAL_SECTOR {
        return Err(PageError::Format { found: format });
    }
    Ok(PhysicalPlace {
        // SBC-3, physical sector format: three bytes of cylinder, one of head, four of sector.
        cylinder: Cylinder(u32::from_be_bytes([0, page[6], page[7], page[8]])),
        surface: u32::from(page[9]),
        sector: u32::from_be_bytes([page[10], page[11], page[12], page[13]]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_is_laid_out_as_the_manuals_have_it() {
        let short = [0x40, 0, 0, 0x0a, 0, 5, 0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0];
        assert_eq!(request(Lbn(0x1234_5678)), short);
        let long = [0x40, 0, 0, 0x0a, 3, 5, 0, 0, 0, 2, 0, 0, 0, 1];
        assert_eq!(request(Lbn(0x2_0000_0001)), long);
    }

    #[test]
    fn an_answer_is_read_with_its_flags() {
        // Cylinder 0x010203, head 1, sector 0x477. The sector is an alternate sector.
        let page = [0x40, 0, 0, 0x0a, 0, 0b0100_0101, 1, 2, 3, 1, 0, 0, 4, 0x77];
        let place = PhysicalPlace {
            cylinder: Cylinder(0x01_0203),
            surface: 1,
            sector: 0x477,
        };
        assert_eq!(answered(&page), Ok(place));
        let mut two = page.to_vec();
        two[3] = 0x12;
        two.extend([0; 8]);
        assert_eq!(answered(&two), Ok(place));
    }

    #[test]
    fn what_is_no_translation_is_refused() {
        assert_eq!(
            answered(&[0x40, 0]),
            Err(PageError::Short {
                found: 2,
                expected: 14
            })
        );
        let other = [0, 0, 0, 0x0a, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(answered(&other), Err(PageError::Page { found: 0 }));
        let block = [0x40, 0, 0, 0x0a, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(answered(&block), Err(PageError::Format { found: 0 }));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_an_error(page in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = answered(&page);
        }
    }
}

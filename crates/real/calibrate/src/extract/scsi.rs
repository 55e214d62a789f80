//! Address translation of SCSI disks: the translate-address page of SEND DIAGNOSTIC
//! and RECEIVE DIAGNOSTIC RESULTS (SBC, page 40h; described in vendors' manuals, as
//! Seagate's Medalist Pro 2160N, section 3.6, and HGST's Ultrastar C15K600, 18.40.3).
//!
//! Bytes: 0 page code; 2-3 length of what follows; 4 supplied format; 5 translated
//! format, in the answer with flags above; from 6 on addresses of 8 bytes. A
//! physical sector is a cylinder of 3 bytes, a head of 1, a sector of 4, all
//! big-endian. What carries commands to a device is a [`Transport`]: [`ScsiGeneric`], or
//! another.

mod generic;

pub use self::generic::ScsiGeneric;
use crate::extract::machine::Place;
use fullstroke_device::scsi::CommandError;
use fullstroke_units::{Cylinder, Lbn};
use thiserror::Error;

const PAGE: u8 = 0x40;
const HEADER: usize = 6;
const ADDRESS: usize = 8;
/// A logical block of 32 bits, and of 64; a physical sector.
const SHORT_BLOCK: u8 = 0b000;
const LONG_BLOCK: u8 = 0b011;
const PHYSICAL_SECTOR: u8 = 0b101;
const FORMAT_MASK: u8 = 0b111;

/// What a device answered is no translation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PageError {
    /// Too few bytes.
    #[error("found {found} bytes; expected at least {expected}")]
    Short {
        /// How many.
        found: usize,
        /// How many there must be.
        expected: usize,
    },
    /// Another page.
    #[error("found page {found:#04x}; expected {PAGE:#04x}")]
    Page {
        /// Its code.
        found: u8,
    },
    /// Another format.
    #[error("found format {found:#05b}; expected a physical sector, 0b101")]
    Format {
        /// Its code.
        found: u8,
    },
    /// The device could not be asked.
    #[error(transparent)]
    Transport(#[from] CommandError),
}

/// Carries the two commands to a device.
pub trait Transport {
    /// SEND DIAGNOSTIC with this parameter list (PF set).
    ///
    /// # Errors
    /// If the device refuses.
    fn send_diagnostic(&mut self, parameters: &[u8]) -> Result<(), CommandError>;

    /// RECEIVE DIAGNOSTIC RESULTS of at most so many bytes.
    ///
    /// # Errors
    /// If the device refuses.
    fn receive_diagnostic(&mut self, bytes_max: u16) -> Result<Vec<u8>, CommandError>;
}

/// Where `lbn` lies, as the device says.
///
/// # Errors
/// If it refuses, or answers something else.
pub fn ask(transport: &mut dyn Transport, lbn: Lbn) -> Result<Place, PageError> {
    transport.send_diagnostic(&request(lbn))?;
    let answer = transport.receive_diagnostic(64)?;
    answered(&answer)
}

/// The parameter list that asks for the physical sector of a logical block.
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

/// The first physical sector of an answer: a block may cover several.
///
/// # Errors
/// If it is not such an answer.
pub fn answered(page: &[u8]) -> Result<Place, PageError> {
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
    Ok(Place {
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
        // Cylinder 0x010203, head 1, sector 0x477; the sector is an alternate one.
        let page = [0x40, 0, 0, 0x0a, 0, 0b0100_0101, 1, 2, 3, 1, 0, 0, 4, 0x77];
        let place = Place {
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

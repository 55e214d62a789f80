//! Readers of options for files and for verification.

use super::Done;
use crate::job::{FileOrder, FioJob};
use crate::option::OptionValue;
use crate::units::integer;
use fullstroke_contract::reason;

pub(crate) fn directory(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.files.directories = names(value.required()?);
    Ok(())
}

pub(crate) fn filename(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.files.names = names(value.required()?);
    Ok(())
}

/// Splits names at `:`. As in fio, `\:` is a colon within a name (`get_next_str` in fio's
/// `options.c`).
fn names(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, names.last_mut()) {
            ('\\', Some(name)) if letters.peek() == Some(&':') => {
                name.push(':');
                letters.next();
            }
            (':', _) => names.push(String::new()),
            (letter, Some(name)) => name.push(letter),
            (_, None) => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

pub(crate) fn filename_format(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.files.name_format = Some(value.required()?.to_owned());
    Ok(())
}

pub(crate) fn fallocate(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let known = [
        ("native", true),
        ("posix", true),
        ("keep", true),
        ("1", true),
        ("none", false),
        ("truncate", false),
        ("0", false),
    ];
    job.files.allocated = value.choice(&known)?;
    Ok(())
}

pub(crate) fn verify(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let text = value.required()?;
    let known = [
        "md5",
        "crc64",
        "crc32",
        "crc32c",
        "crc32c-intel",
        "crc16",
        "crc7",
        "sha1",
        "sha256",
        "sha512",
        "sha3-224",
        "sha3-256",
        "sha3-384",
        "sha3-512",
        "xxhash",
        "meta",
        "pattern",
        "pattern_hdr",
        "null",
    ];
    job.verify.on = known.contains(&text);
    if job.verify.on || matches!(text, "0" | "none") {
        return Ok(());
    }
    Err(reason!(
        "found `{text}`; expected 0 or one of {}",
        known.join(", ")
    ))
}

pub(crate) fn do_verify(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.verify.at_end = value.switch()?;
    Ok(())
}

pub(crate) fn verify_backlog(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.verify.backlog = value.integer()?;
    Ok(())
}

pub(crate) fn verify_backlog_batch(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.verify.batch = value.integer()?;
    Ok(())
}

/// Largest number of files. A larger number is probably a typing error.
const FILES_MAX: u64 = 1 << 16;

pub(crate) fn nrfiles(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.files.number = Some(value.within(0, FILES_MAX)?).filter(|number| *number > 0);
    Ok(())
}

pub(crate) fn file_service_type(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    let text = value.required()?;
    let (kind, ios) = text.split_once(':').unwrap_or((text, "1"));
    job.files.service = match kind {
        "roundrobin" | "rr" | "0" | "1" => FileOrder::RoundRobin,
        "sequential" => FileOrder::Sequential,
        "random" => FileOrder::Random,
        _ => {
            return Err(reason!(
                "found `{kind}`; expected roundrobin, sequential or random"
            ));
        }
    };
    job.files.service_ios = integer(ios, value.kb_base)?.max(1);
    Ok(())
}

pub(crate) fn overwrite(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.files.overwrite = value.switch()?;
    Ok(())
}

pub(crate) fn create_on_open(job: &mut FioJob, value: OptionValue<'_>) -> Done {
    job.files.create_on_open = value.switch()?;
    Ok(())
}

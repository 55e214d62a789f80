//! Columns of a table as the user names them (`--columns`).

pub(crate) mod names;

use fullstroke_contract::Operation;
use names::{ROLES, Role, unit_of};
use std::str::FromStr;

/// Columns as the user names them: `time=ts:us,op=rw,offset=off:bytes,size=len:bytes`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ColumnMap {
    pub(crate) columns: Vec<NamedColumn>,
    /// Operation of all requests, from `op=read` or `op=write`.
    pub(crate) operation: Option<Operation>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamedColumn {
    pub(crate) role: Role,
    /// Name, or number from 1.
    pub(crate) name: String,
    pub(crate) unit: Option<u64>,
}

pub(crate) const EXAMPLE: &str =
    "time=ts:us,op=rw,offset=lba:sectors,size=len:bytes,latency=lat:ms,device=disk";

impl FromStr for ColumnMap {
    type Err = String;

    fn from_str(text: &str) -> Result<ColumnMap, String> {
        let mut map = ColumnMap::default();
        for item in text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            let Some((option, column)) = item.split_once('=') else {
                return Err(format!(
                    "`{item}` has no `=`; expected ROLE=COLUMN[:UNIT], as in {EXAMPLE}"
                ));
            };
            let role = role_called(option.trim())?;
            map.add(role, column.trim())?;
        }
        Ok(map)
    }
}

fn role_called(option: &str) -> Result<Role, String> {
    let known = ROLES.iter().filter(|role| !role.option.is_empty());
    let found = known.clone().find(|role| role.option == option);
    found.map(|role| role.role).ok_or_else(|| {
        let names: Vec<&str> = known.map(|role| role.option).collect();
        format!("there is no role `{option}`; roles: {}", names.join(", "))
    })
}

impl ColumnMap {
    fn add(&mut self, role: Role, column: &str) -> Result<(), String> {
        if role == Role::Operation && matches!(column, "read" | "write") {
            self.operation = Some(match column {
                "read" => Operation::Read,
                _ => Operation::Write,
            });
            return Ok(());
        }
        let (name, unit) = match column.rsplit_once(':') {
            Some((name, unit)) => match unit_of(role, unit) {
                Some(value) => (name, Some(value)),
                None => {
                    return Err(format!(
                        "`{column}` has no unit `{unit}`; units of times: s, ms, us, ns, 100ns; of addresses and \
                         sizes: bytes, sectors (512 bytes), KiB, MiB, or a number of bytes"
                    ));
                }
            },
            None => (column, None),
        };
        if name.is_empty() {
            return Err(format!("`{column}` names no column"));
        }
        if self.columns.iter().any(|other| other.role == role) {
            return Err(format!("the role of `{column}` is given twice"));
        }
        self.columns.push(NamedColumn {
            role,
            name: name.to_owned(),
            unit,
        });
        Ok(())
    }

    /// Returns true if all columns are numbers, so that the table needs no header.
    pub(crate) fn is_by_numbers(&self) -> bool {
        !self.columns.is_empty()
            && self
                .columns
                .iter()
                .all(|column| column.name.parse::<usize>().is_ok())
    }
}

//! Tables with a column for the size of a block: `block` and `blocks` count such blocks.

use super::RowValues;
use super::map::{PlannedColumn, Table};
use crate::columns::names::{Role, is_role, joined};

/// Parts of the names of columns that count blocks.
const OF_BLOCKS: [&str; 4] = ["block", "blk", "lba", "lbn"];

/// Returns true if a column counts blocks, or sectors if the table says the size of a sector.
fn counts_blocks(column: &PlannedColumn, of_sectors: bool) -> bool {
    let name = joined(&column.name);
    if name.ends_with("blocks") || (of_sectors && name.contains("sector")) {
        return true;
    }
    // A further word is a unit, as in `lba_512`.
    is_role(&name) && (name == "count" || OF_BLOCKS.iter().any(|part| name.contains(part)))
}

/// Marks the address and the size that count blocks of the column of block sizes. Without another
/// size, the size of a block is the size of the request.
pub(super) fn settle(table: &mut Table) {
    let Some(at) = table
        .columns
        .iter()
        .position(|column| column.role == Role::BlockSize)
    else {
        return;
    };
    let of_size = |column: &PlannedColumn| column.role == Role::Size;
    if !table.columns.iter().any(of_size) {
        table.columns[at].role = Role::Size;
        return;
    }
    let of_sectors = joined(&table.columns[at].name).contains("sector");
    for column in &mut table.columns {
        let in_blocks = match column.role {
            Role::Start => &mut table.start_in_blocks,
            Role::Size => &mut table.size_in_blocks,
            _ => continue,
        };
        if !column.unit_is_given && counts_blocks(column, of_sectors) {
            *in_blocks = true;
            column.unit = 1;
        }
    }
}

impl RowValues {
    /// Multiplies counts of blocks by the size of a block. Returns `None` beyond 2^64 bytes.
    pub(super) fn in_bytes(&mut self, table: &Table) -> Option<()> {
        let block = self.block_size;
        for (value, in_blocks) in [
            (&mut self.start, table.start_in_blocks),
            (&mut self.size, table.size_in_blocks),
        ] {
            if in_blocks {
                *value = value.checked_mul(block)?;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::blktrace::testing::rows_of;
    use crate::formats::csv::FORMAT;

    /// Reads one row and returns first sector and sectors.
    fn place(text: &str) -> (u64, u64) {
        let rows = rows_of(&FORMAT, text.as_bytes());
        let rows = rows.unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
        assert_eq!(rows.len(), 1, "{text}");
        (rows[0].start, rows[0].sectors)
    }

    #[test]
    fn blocks_count_in_the_size_of_the_column_beside_them() {
        for text in [
            "time_s,op,block,blocks,block_size\n1,R,100,8,4096\n",
            "time_s;op;bs;blkno;nblks\n1;R;4k;100;8\n",
            "time_s|op|LBA|BlockCount|LogicalBlockSize\n1|R|100|8|4096\n",
            "time_s,op,start_sector,sectors,sector_size\n1,R,100,8,4096\n",
            "time_s,op,address,length,block_size\n1,R,100,8,4096\n",
            "time_s,op,offset_bytes,count,bs (KiB)\n1,R,409600,8,4\n",
        ] {
            assert_eq!(place(text), (800, 64), "{text}");
        }
    }

    #[test]
    fn bytes_and_given_units_stay() {
        for text in [
            "time_s,op,offset,size,block_size\n1,R,409600,32768,4096\n",
            "time_s,op,lba_512,size_bytes,bs\n1,R,800,32768,4096\n",
            // The size of a request that is one block.
            "time_s,op,offset,block_size\n1,R,409600,32768\n",
            "time_s,op,offset,bs\n1,R,409600,32k\n",
        ] {
            assert_eq!(place(text), (800, 64), "{text}");
        }
    }
}

//! The steps of a commit of the intent log (`zil_commit`, `zil_lwb_write_issue`, OpenZFS 2.1).

use crate::classes::Class;
use crate::io::{Cause, Purpose};
use crate::keys::Logbias;
use crate::place::Dva;
use crate::pool::Pool;
use crate::zil::Commit;
use fullstroke_contract::{Effects, Operation};
use fullstroke_units::Time;

/// Bytes of the place of the log on a vdev or a log drive. The log uses its blocks in turn.
const LOG_SPACE: u64 = 512 << 20;

impl Pool {
    /// Takes the next steps of the commit, as far as no step waits for a drive.
    pub(crate) fn commit_step(&mut self, now: Time, out: &mut Effects) {
        loop {
            if self.zil.outstanding > 0 {
                return;
            }
            match self.zil.commit {
                Commit::None if self.zil.waiting.is_empty() => return,
                Commit::None => self.begin_commit(now),
                Commit::Writing => {
                    self.zil.commit = Commit::Flushing;
                    self.zil.outstanding = 1;
                    let touched = std::mem::take(&mut self.zil.touched);
                    self.io
                        .command(Operation::Flush, Some(&touched), Purpose::Log, out);
                    self.zil.touched = touched;
                }
                Commit::Flushing => self.end_commit(now),
            }
            // Blocks without a living drive end at once. The caller takes the ended blocks before
            // the next step.
            if !self.io.ended.is_empty() {
                return;
            }
        }
    }

    fn begin_commit(&mut self, now: Time) {
        while let Some(asked) = self.zil.waiting.pop_front() {
            let object = self.object_of(&self.asked[asked].request);
            self.zil.take_object(object);
            self.zil.batch.push(asked);
        }
        // A flush without new writes has no block to write and no drive to flush.
        if !self.zil.has_news() {
            return self.end_commit(now);
        }
        self.zil.commit = Commit::Writing;
        self.zil.commits += 1;
        let members = self.settings.members.len();
        self.zil.touched.clear();
        self.zil.touched.resize(members, false);
        for record in std::mem::take(&mut self.zil.indirect) {
            self.write_to_place(now, record);
        }
        let mut blocks = std::mem::take(&mut self.zil.blocks);
        self.zil.take_blocks(&mut blocks);
        for &size in &blocks {
            self.write_log_block(now, size);
        }
        self.zil.blocks = blocks;
    }

    /// Writes a dirty record to its final place (`dmu_sync`).
    fn write_to_place(&mut self, now: Time, record: u64) {
        // A record that its group writes already, or that the log has written already, is not
        // written again.
        if !self.txg.is_open(record) || self.txg.logged.contains_key(&record) {
            return;
        }
        let psize = self.psize_of(record);
        let Ok(dva) = self.take_place(psize, false) else {
            return;
        };
        self.txg.logged.insert(record, dva);
        self.write_log(now, dva, psize);
    }

    fn write_log(&mut self, now: Time, dva: Dva, psize: u64) {
        let drives = self.io.drives(dva.vdev as usize);
        self.zil.touched[drives].fill(true);
        self.zil.outstanding += 1;
        let cause = Cause::background();
        self.io
            .write(now, (dva, psize), Class::SyncWrite, Purpose::Log, cause);
    }

    /// Writes a block of the log: on the log drives in turn, or on the vdevs' last metaslabs in turn.
    fn write_log_block(&mut self, now: Time, size: u64) {
        let number = self.zil.written;
        self.zil.written += 1;
        let members = self.settings.members.len();
        let alive = (members - self.settings.logs..members).filter(|&m| !self.io.has_failed(m));
        let count = match self.settings.logbias {
            Logbias::Latency => alive.clone().count() as u64,
            // `zil_lwb_write_issue` passes log drives by.
            Logbias::Throughput => 0,
        };
        let room = self.zil.room(size);
        // Log drives take the blocks in turn. Without a living log drive, the data vdevs hold the
        // log.
        if count > 0
            && let Some(member) = alive.clone().nth((number % count) as usize)
        {
            self.zil.touched[member] = true;
            self.zil.outstanding += 1;
            let at = self.zil.take(member, room, LOG_SPACE);
            let offset = crate::capacity::FRONT + at;
            return self.io.write_leaf(now, member, offset, size, Purpose::Log);
        }
        let vdevs = self.settings.vdevs.len() as u64;
        let index = (number % vdevs) as usize;
        let (vdev, child) = &self.settings.vdevs[index];
        let cut = crate::capacity::Metaslabs::of(vdev.size(*child));
        let start = (cut.count.saturating_sub(1)) << cut.shift;
        let space = (1u64 << cut.shift).min(LOG_SPACE);
        let alignment = vdev.alignment(self.settings.ashift);
        let size = size.next_multiple_of(1 << self.settings.ashift);
        let room = vdev.asize(room.next_multiple_of(1 << self.settings.ashift));
        let room = room.next_multiple_of(alignment);
        let first = start.next_multiple_of(alignment);
        let at = self
            .zil
            .take(index, room, space.saturating_sub(first - start));
        let dva = Dva {
            vdev: index as u32,
            offset: first + at,
        };
        self.write_log(now, dva, size);
    }

    fn end_commit(&mut self, now: Time) {
        self.zil.commit = Commit::None;
        let last = self.zil.last;
        for asked in std::mem::take(&mut self.zil.batch) {
            self.asked[asked].last = last;
            self.finish(now, asked);
        }
    }
}

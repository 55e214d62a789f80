//! Counts over the plans of a volume. A report uses the counts to explain why a layout is fast or
//! slow.

use crate::plan::{Method, Plan};
use fullstroke_contract::{Completion, LayerReadings, Operation};
use fullstroke_units::{Duration, Sectors};

/// Counts over all requests from above. The counts need constant memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct VolumeCounts {
    reads: Requests,
    writes: Requests,
    /// Sectors that reads of data read only to close gaps.
    read_for_nothing: Sectors,
    /// Number of member reads in the first phase of writes.
    pre_reads: u64,
    /// Number of planned bands of rows, by [`Method`].
    methods: [u64; Method::ALL.len()],
    /// Member writes over sectors read by the same request just before.
    rewrites: WriteCounts,
    /// Other member writes after reads.
    others: WriteCounts,
    /// Number of writes' first I/Os with an exclusive row, and their total wait for the row.
    held: u64,
    row_wait: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    count: u64,
    member_ios: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct WriteCounts {
    count: u64,
    rotation: Duration,
}

impl VolumeCounts {
    /// Counts a planned request from above.
    #[inline]
    pub(crate) fn planned(&mut self, operation: Operation, plan: &Plan) {
        let requests = match operation {
            Operation::Read => &mut self.reads,
            Operation::Write => &mut self.writes,
            _ => return,
        };
        requests.count += 1;
        requests.member_ios += plan.ios().len() as u64;
        self.read_for_nothing += plan.read_for_nothing();
        if operation == Operation::Write {
            let first = plan
                .strands()
                .iter()
                .filter(|strand| !strand.second_phase().is_empty());
            self.pre_reads += first
                .map(|strand| strand.first_phase().len() as u64)
                .sum::<u64>();
        }
        for (sum, bands) in self.methods.iter_mut().zip(plan.methods()) {
            *sum += u64::from(*bands);
        }
    }

    /// Counts a request from above whose member I/O is counted one by one.
    #[inline]
    pub(crate) fn asked(&mut self, operation: Operation) {
        match operation {
            Operation::Read => self.reads.count += 1,
            _ => self.writes.count += 1,
        }
    }

    /// Counts a member I/O for a request of the same operation.
    #[inline]
    pub(crate) fn member_io(&mut self, operation: Operation) {
        match operation {
            Operation::Read => self.reads.member_ios += 1,
            _ => self.writes.member_ios += 1,
        }
    }

    /// Counts a member read for a write.
    #[inline]
    pub(crate) fn read_for_write(&mut self) {
        self.writes.member_ios += 1;
        self.pre_reads += 1;
    }

    /// Counts stripes that were written by one method.
    #[inline]
    pub(crate) fn stripes_written(&mut self, method: Method, stripes: u64) {
        self.methods[method as usize] += stripes;
    }

    /// Counts a write whose row became free: its member I/O could begin `wait` after the arrival of
    /// the write.
    #[inline]
    pub(crate) fn got_row(&mut self, wait: Duration) {
        self.held += 1;
        // Many writes wait at the same time, so that the sum may overflow.
        self.row_wait = self.row_wait.saturating_add(wait);
    }

    /// Counts the completion of a member write of the second phase. `was_read` is true if the
    /// request had read the same sectors.
    #[inline]
    pub(crate) fn written(&mut self, was_read: bool, completion: &Completion) {
        let writes = if was_read {
            &mut self.rewrites
        } else {
            &mut self.others
        };
        writes.count += 1;
        writes.rotation = writes
            .rotation
            .saturating_add(completion.breakdown.rotation);
    }

    /// Returns the readings by name. Readings without any counted event are left out. The readings
    /// in `further` follow at the end.
    pub(crate) fn readings(&self, layout: &str, further: &[(&'static str, f64)]) -> LayerReadings {
        let share = |part: u64, whole: u64| part as f64 / whole as f64;
        let second_phase = self.rewrites.count + self.others.count;
        let writing: u64 = self.methods.iter().sum();
        let method = |method: Method| share(self.methods[method as usize], writing);
        let rotation_ms =
            |writes: WriteCounts| writes.rotation.as_millis_f64() / writes.count as f64;
        let dummy = match self.read_for_nothing {
            // No discarded sectors: NaN leaves the reading out.
            Sectors::ZERO => f64::NAN,
            // One KiB is two sectors of 512 bytes.
            Sectors(sectors) => share(sectors, 2 * self.reads.count),
        };
        let all = [
            (
                "volume_ios_per_read",
                share(self.reads.member_ios, self.reads.count),
            ),
            ("volume_dummy_kib_per_read", dummy),
            (
                "volume_ios_per_write",
                share(self.writes.member_ios, self.writes.count),
            ),
            (
                "volume_pre_reads_per_write",
                share(self.pre_reads, self.writes.count),
            ),
            (
                "volume_row_wait_ms_mean",
                self.row_wait.as_millis_f64() / self.held as f64,
            ),
            ("volume_full_stripe_share", method(Method::FullStripe)),
            (
                "volume_read_modify_write_share",
                method(Method::ReadModifyWrite),
            ),
            (
                "volume_reconstruct_write_share",
                method(Method::ReconstructWrite),
            ),
            ("volume_recover_share", method(Method::Recover)),
            ("volume_unprotected_share", method(Method::Unprotected)),
            (
                "volume_rewrite_share",
                share(self.rewrites.count, second_phase),
            ),
            (
                "volume_rewrite_rotation_ms_mean",
                rotation_ms(self.rewrites),
            ),
            (
                "volume_other_write_rotation_ms_mean",
                rotation_ms(self.others),
            ),
        ];
        // A share of nothing is 0/0, which is NaN.
        let counted: Vec<(&'static str, f64)> = all
            .iter()
            .chain(further)
            .copied()
            .filter(|(_, value)| !value.is_nan())
            .collect();
        LayerReadings::new(format!("volume {layout}"), &counted)
    }
}

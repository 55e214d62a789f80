//! The tracks in a drive's buffer, followed from outside.

use fullstroke_contract::Extent;
use std::collections::BTreeMap;

/// State of a track (`tr_buffer_desc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BufferedTrack {
    pub extent: Extent,
    /// Number of reads of the track since the first read, which is not counted (`cache_access`).
    pub hits: u32,
    /// Number of reads that continued the previous read.
    in_order: u32,
    /// End of the last read (`last_accessed_blk`).
    last: u64,
    /// True if the track has entered the transfer window.
    in_window: bool,
    /// Tick of the last use.
    tick: u64,
}

impl BufferedTrack {
    /// True if the track is read sequentially, that is, in at least half of the reads. The document
    /// compares two neighbouring reads and leaves open which reads.
    pub fn is_sequential(&self) -> bool {
        // `hits` leaves out the first read, so `2 in_order > hits` means at least half of all
        // reads.
        2 * self.in_order > self.hits
    }
}

/// Whole tracks; the least recently used track goes first.
pub(super) struct TrackBuffer {
    most: usize,
    window: usize,
    tick: u64,
    /// Tracks by first sector.
    tracks: BTreeMap<u64, BufferedTrack>,
    /// First sectors of the tracks, by tick of the last use.
    order: BTreeMap<u64, u64>,
}

impl TrackBuffer {
    pub fn new(most: usize, window: usize) -> TrackBuffer {
        TrackBuffer {
            most,
            window,
            tick: 0,
            tracks: BTreeMap::new(),
            order: BTreeMap::new(),
        }
    }

    /// Records a read of sectors `start..end` of a track. Sets `found` to false if the track was
    /// not in the buffer. Returns the track that had to go.
    pub fn read(
        &mut self,
        extent: Extent,
        start: u64,
        end: u64,
        found: &mut bool,
    ) -> Option<BufferedTrack> {
        self.tick += 1;
        let tick = self.tick;
        let first = extent.start.0;
        // A read that continues from the previous track counts as sequential as well.
        let comes_over = start == first && self.ends_at(first);
        let (track, came) = match self.take(first) {
            Some(track) => (track, false),
            None => (
                BufferedTrack {
                    extent,
                    hits: 0,
                    in_order: 0,
                    // No read ends there, so the first read of a track continues nothing on the
                    // track.
                    last: u64::MAX,
                    in_window: false,
                    tick,
                },
                true,
            ),
        };
        *found &= !came;
        // Room is made before the new track enters, so the new track is never the one to go.
        let gone = (came && self.tracks.len() >= self.most)
            .then(|| self.oldest())
            .flatten();
        let gone = gone.and_then(|oldest| self.take(oldest));
        let in_order = track.in_order + u32::from(track.last == start || comes_over);
        let hits = track.hits + u32::from(!came);
        self.tracks.insert(
            first,
            BufferedTrack {
                hits,
                in_order,
                last: end,
                in_window: false,
                tick,
                ..track
            },
        );
        assert!(
            self.tracks.len() <= self.most.max(1),
            "{} tracks are followed, of {}",
            self.tracks.len(),
            self.most
        );
        self.order.insert(tick, first);
        gone
    }

    /// True if the last read of the track before `sector` reached the end of that track.
    fn ends_at(&self, sector: u64) -> bool {
        let before = self.tracks.range(..sector).next_back();
        before.is_some_and(|(_, track)| track.extent.end().0 == sector && track.last == sector)
    }

    fn oldest(&self) -> Option<u64> {
        self.order.first_key_value().map(|(_, first)| *first)
    }

    fn take(&mut self, first: u64) -> Option<BufferedTrack> {
        let track = self.tracks.remove(&first)?;
        let order = self.order.remove(&track.tick);
        assert_eq!(
            order,
            Some(first),
            "another track was used at tick {}",
            track.tick
        );
        Some(track)
    }

    /// Returns a track that has newly entered the transfer window. The window holds the next tracks
    /// to go.
    pub fn enter_window(&mut self) -> Option<BufferedTrack> {
        let room = self.most - self.tracks.len();
        // Free places at the end of the buffer go before the oldest tracks, so the window holds
        // fewer tracks.
        let near = self.order.values().take(self.window.saturating_sub(room));
        let first = *near
            .into_iter()
            .find(|first| !self.tracks[*first].in_window)?;
        debug_assert!(
            self.tracks.contains_key(&first),
            "the track at {first} was used, and is not here"
        );
        let track = self.tracks.get_mut(&first)?;
        track.in_window = true;
        Some(*track)
    }

    /// Removes a track after a fetch of the whole track.
    pub fn give_up(&mut self, first: u64) {
        self.take(first);
    }

    /// Removes tracks whose data are overwritten.
    pub fn overwritten(&mut self, extent: Extent) {
        // Tracks do not overlap and lie in order of address, so the search ends at the first track
        // before the extent.
        let before = self.tracks.range(..extent.end().0).rev();
        let over: Vec<u64> = before
            .take_while(|(_, track)| track.extent.end() > extent.start)
            .map(|(first, _)| *first)
            .collect();
        over.into_iter().for_each(|first| self.give_up(first));
    }
}

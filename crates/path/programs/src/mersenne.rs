//! The random numbers of PostMark 1.5: the Mersenne Twister.

/// Number of words of the state, and index of the middle word for each new word.
const WORDS: usize = 624;
const MIDDLE: usize = 397;

/// MT19937 (Matsumoto and Nishimura, ACM TOMACS 8(1), 1998), with the seeding of the authors'
/// version of October 1999.
#[derive(Clone, Debug)]
pub(crate) struct Mersenne {
    state: Box<[u32; WORDS]>,
    next: usize,
}

impl Mersenne {
    /// Returns the generator for a seed. Knuth's generator 69069 x + 1 fills the state: each word
    /// gets the upper halves of two numbers.
    pub fn new(seed: u32) -> Mersenne {
        let mut number = seed;
        let mut half = || {
            let upper = number >> 16;
            // Modulo 2^32, as in the published program.
            number = number.wrapping_mul(69_069).wrapping_add(1);
            upper
        };
        let state = Box::new(std::array::from_fn(|_| {
            let upper = half();
            upper << 16 | half()
        }));
        Mersenne { state, next: WORDS }
    }

    fn turn(&mut self) {
        for word in 0..WORDS {
            let joined =
                (self.state[word] & 0x8000_0000) | (self.state[(word + 1) % WORDS] & 0x7fff_ffff);
            let twist = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[word] = self.state[(word + MIDDLE) % WORDS] ^ (joined >> 1) ^ twist;
        }
        self.next = 0;
    }

    /// Returns the next number.
    pub fn draw(&mut self) -> u32 {
        if self.next == WORDS {
            self.turn();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        // Tempering with the shifts and masks of the published algorithm.
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// Returns a number below `bound`, by the remainder. For a bound of 0 returns 0 and draws
    /// nothing.
    pub fn below(&mut self, bound: u32) -> u32 {
        if bound == 0 { 0 } else { self.draw() % bound }
    }
}

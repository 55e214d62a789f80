//! Readers for the results of `tools/kernel-lab.py`.

/// The random numbers of `tools/kernel-lab/requests.c`: splitmix64.
pub fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the number behind `name=` in a line of the kernel.
pub fn number(line: &str, name: &str) -> u64 {
    let (_, rest) = line.split_once(&format!(" {name}=")).unwrap();
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

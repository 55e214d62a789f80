//! Tests with other projects' clients, each with its own strengths.

use crate::common::success;
use crate::pattern;
use crate::programs::{installed, output, run};
use crate::server::{Server, StackFolder};
use crate::stacks::{self, DISK, NESTED, RAID5, RAID6, RAID10, TestedVolume};
use serde_json::Value;
use std::fs;

const MIB: usize = 1 << 20;

/// Writes a file of `mib` MiB. The second half is a hole.
fn put_image(place: &StackFolder, mib: usize) -> String {
    let path = place.path("image");
    let half = mib * MIB / 2;
    fs::write(&path, pattern::bytes(0, 1, half)).unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(2 * half as u64)
        .unwrap();
    place.name("image")
}

fn served(volume: TestedVolume, disk_mib: u64) -> Server {
    StackFolder::new(volume, disk_mib).serve(&["--no-delay"])
}

#[test]
fn nbdinfo_sees_size_blocks_and_what_a_disk_can_do() {
    if !installed(&["nbdinfo"]) {
        return;
    }
    let server = served(RAID5, 64);
    let told: Value = serde_json::from_str(&output("nbdinfo", &["--json", &server.uri()])).unwrap();
    let export = &told["exports"][0];
    assert_eq!(export["export-size"], 4 * 64 * MIB);
    assert_eq!(told["structured"], true);
    for ability in [
        "is_rotational",
        "can_flush",
        "can_fua",
        "can_trim",
        "can_zero",
        "can_fast_zero",
        "can_multi_conn",
        "can_cache",
        "can_df",
    ] {
        assert_eq!(export[ability], true, "{ability}: {export}");
    }
    assert_eq!(export["is_read_only"], false);
    assert_eq!(export["contexts"], serde_json::json!(["base:allocation"]));
    assert_eq!(
        (&export["block_size_minimum"], &export["block_size_maximum"]),
        (&512.into(), &(32 * MIB).into())
    );
    server.stop_well();
}

#[test]
fn nbdinfo_lists_all_exports_and_the_first_is_the_default() {
    if !installed(&["nbdinfo"]) {
        return;
    }
    let place = StackFolder::new(RAID5, 32);
    let other = stacks::write(RAID10, 32, place.stack.parent().unwrap());
    let server = place.serve_stacks(&[&place.stack(), other.to_str().unwrap()], &["--no-delay"]);
    let told: Value =
        serde_json::from_str(&output("nbdinfo", &["--list", "--json", &server.uri()])).unwrap();
    let of = |key: &str| -> Vec<&Value> {
        told["exports"]
            .as_array()
            .unwrap()
            .iter()
            .map(|export| &export[key])
            .collect()
    };
    assert_eq!(of("export-name"), ["raid5", "raid10"]);
    assert_eq!(
        of("export-size"),
        [&Value::from(4 * 32 * MIB), &Value::from(2 * 32 * MIB)]
    );
    assert_eq!(
        output("nbdinfo", &["--size", &server.uri()]).trim(),
        (4 * 32 * MIB).to_string()
    );
    let second = format!("nbd+unix:///raid10?socket={}", server.socket().display());
    assert_eq!(
        output("nbdinfo", &["--size", &second]).trim(),
        (2 * 32 * MIB).to_string()
    );
    server.stop_well();
}

#[test]
fn a_read_only_export_is_read_and_not_written() {
    if !installed(&["nbdinfo", "nbdcopy"]) {
        return;
    }
    let server = StackFolder::new(RAID5, 32).serve(&["--no-delay", "--read-only"]);
    output("nbdinfo", &["--is", "read-only", &server.uri()]);
    let image = put_image(server.place(), 1);
    assert!(
        !run("nbdcopy", &["--", &image, &server.uri()])
            .status
            .success()
    );
    let copied = server.place().name("copied");
    output("nbdcopy", &["--", &server.uri(), &copied]);
    assert!(fs::read(&copied).unwrap().iter().all(|&byte| byte == 0));
    server.stop_well();
}

#[test]
fn nbdcopy_gets_back_over_four_connections_what_it_put() {
    if !installed(&["nbdcopy"]) {
        return;
    }
    for volume in [NESTED, RAID6] {
        let server = served(volume, 32);
        let image = put_image(server.place(), 128);
        let copied = server.place().name("copied");
        output(
            "nbdcopy",
            &["--connections=4", "--flush", &image, &server.uri()],
        );
        output("nbdcopy", &["--connections=4", &server.uri(), &copied]);
        let (image, copied) = (fs::read(&image).unwrap(), fs::read(&copied).unwrap());
        pattern::assert_same(&copied, &image, volume.name);
        server.scrub();
        server.stop_well();
    }
}

#[test]
fn nbdinfo_maps_what_was_written_and_what_was_not() {
    if !installed(&["nbdinfo", "nbdcopy"]) {
        return;
    }
    let server = served(RAID5, 32);
    let image = put_image(server.place(), 128);
    output("nbdcopy", &["--", &image, &server.uri()]);
    let map: Value =
        serde_json::from_str(&output("nbdinfo", &["--map", "--json", &server.uri()])).unwrap();
    let extents: Vec<(u64, u64, u64)> = map
        .as_array()
        .unwrap()
        .iter()
        .map(|extent| {
            let number = |key: &str| extent[key].as_u64().unwrap();
            (number("offset"), number("length"), number("type"))
        })
        .collect();
    let half = 64 * MIB as u64;
    assert_eq!(extents, [(0, half, 0), (half, half, 3)]);
    server.stop_well();
}

/// Script with nbdsh's checks of an empty export of 128 MiB.
const SHELL: &str = r#"
import errno

MIB = 1024 * 1024
size = h.get_size()
assert h.get_structured_replies_negotiated()
assert h.can_meta_context("base:allocation")
assert size == 128 * MIB, size

def extents(length, offset, flags=0):
    found = []
    def extent(context, at, entries, error):
        if context == "base:allocation":
            found.extend(zip(entries[0::2], entries[1::2]))
    h.block_status(length, offset, extent, flags)
    return found

def fails(expected, call):
    try:
        call()
    except nbd.Error as error:
        assert error.errnum == expected, (error.errnum, expected)
    else:
        assert False, "expected %s" % errno.errorcode[expected]

DATA, HOLE = 0, nbd.STATE_HOLE | nbd.STATE_ZERO
assert extents(size, 0) == [(size, HOLE)], extents(size, 0)

# Written, also with FUA, and read again whole and in chunks.
data = bytes(range(256)) * 4096
h.pwrite(data, 4 * MIB, nbd.CMD_FLAG_FUA)
h.flush()
assert h.pread(len(data), 4 * MIB) == data
assert extents(size, 0) == [(4 * MIB, HOLE), (MIB, DATA), (size - 5 * MIB, HOLE)], extents(size, 0)
assert extents(size, 0, nbd.CMD_FLAG_REQ_ONE) == [(4 * MIB, HOLE)]
chunks = []
def chunk(part, offset, status, error):
    chunks.append((offset, len(part), status))
whole = h.pread_structured(2 * MIB, 3 * MIB + 512 * 1024, chunk)
assert whole == bytes(MIB // 2) + data + bytes(MIB // 2)
assert sum(length for _, length, status in chunks if status == nbd.READ_DATA) >= MIB, chunks
chunks.clear()
h.pread_structured(MIB, 4 * MIB, chunk, nbd.CMD_FLAG_DF)
assert chunks == [(4 * MIB, MIB, nbd.READ_DATA)], chunks

# Zeroes with and without holes, and trims.
h.zero(MIB // 2, 4 * MIB)
assert h.pread(MIB, 4 * MIB) == bytes(MIB // 2) + data[MIB // 2:]
h.zero(MIB, 8 * MIB, nbd.CMD_FLAG_NO_HOLE)
assert extents(MIB, 8 * MIB)[0][1] & nbd.STATE_HOLE == 0
assert h.pread(MIB, 8 * MIB) == bytes(MIB)
h.zero(MIB, 9 * MIB, nbd.CMD_FLAG_FAST_ZERO)
fails(errno.ENOTSUP, lambda: h.zero(MIB, 9 * MIB, nbd.CMD_FLAG_FAST_ZERO | nbd.CMD_FLAG_NO_HOLE))
h.trim(64 * MIB, 0)
assert extents(64 * MIB, 0) == [(64 * MIB, HOLE)], extents(64 * MIB, 0)
assert h.pread(MIB, 4 * MIB) == bytes(MIB)
h.cache(MIB, 0)

# What cannot be is refused, and the connection goes on.
h.set_strict_mode(0)
fails(errno.EINVAL, lambda: h.pread(512, size))
fails(errno.ENOSPC, lambda: h.pwrite(bytes(512), size))
assert h.pread(512, 1) == bytes(512)
fails(errno.EINVAL, lambda: h.pread(64 * MIB, 0))
fails(errno.EINVAL, lambda: h.trim(512, size))
assert h.pread(512, 0) == bytes(512)
"#;

#[test]
fn nbdsh_reads_in_chunks_zeroes_trims_and_is_told_errors() {
    if !installed(&["nbdsh"]) {
        return;
    }
    let server = served(RAID5, 32);
    output(
        "nbdsh",
        &[
            "--base-allocation",
            "--uri",
            &server.uri(),
            "--command",
            SHELL,
        ],
    );
    server.scrub();
    server.stop_well();
}

#[test]
fn what_one_connection_wrote_all_others_read() {
    let server = served(RAID6, 16);
    let mut clients: Vec<_> = (0..4).map(|_| server.client()).collect();
    let mut random = pattern::random("connections");
    for version in 0..200 {
        let offset = random.below(64 * 2048) * 512;
        let length = 512 * (1 + random.below(8)) as usize;
        let offset = offset.min(64 * MIB as u64 - length as u64);
        let data = pattern::bytes(offset, version, length);
        let (writer, reader) = (random.below(4) as usize, random.below(4) as usize);
        clients[writer]
            .write(offset, &data, Default::default())
            .unwrap();
        let mut found = vec![0; length];
        clients[reader].read(offset, &mut found).unwrap();
        pattern::assert_same(&found, &data, "another connection");
    }
    server.stop_well();
}

#[test]
fn qemu_img_converts_compares_and_checks() {
    if !installed(&["qemu-img"]) {
        return;
    }
    let server = served(RAID5, 32);
    let image = put_image(server.place(), 128);
    let back = server.place().name("back.qcow2");
    let uri = server.uri();
    output(
        "qemu-img",
        &["convert", "-n", "-f", "raw", "-O", "raw", &image, &uri],
    );
    output(
        "qemu-img",
        &["compare", "-f", "raw", "-F", "raw", &image, &uri],
    );
    output(
        "qemu-img",
        &["convert", "-f", "raw", "-O", "qcow2", &uri, &back],
    );
    output("qemu-img", &["check", &back]);
    output(
        "qemu-img",
        &["compare", "-f", "qcow2", "-F", "raw", &back, &image],
    );
    server.scrub();
    server.stop_well();
}

#[test]
fn qemu_io_verifies_its_patterns() {
    if !installed(&["qemu-io"]) {
        return;
    }
    let server = served(RAID6, 32);
    let commands = [
        "write -P 0x11 0 4M",
        "write -P 0x22 -f 1536 512",
        "write -P 0x33 1M 65536",
        "writev -P 0x44 3M 4096 8192 512",
        "flush",
        "write -z 2M 64k",
        "discard 2560k 64k",
        "read -P 0x11 0 1536",
        "read -P 0x22 1536 512",
        "read -P 0x11 2048 1046528",
        "read -P 0x33 1M 65536",
        "read -P 0x00 2M 64k",
        "read -P 0x44 3M 12800",
        "aio_write -P 0x55 8M 64k",
        "aio_write -P 0x66 16M 64k",
        "aio_flush",
        "read -P 0x55 8M 64k",
        "read -P 0x66 16M 64k",
    ];
    let mut arguments = vec!["-f", "raw"];
    arguments.extend(commands.iter().flat_map(|command| ["-c", command]));
    let uri = server.uri();
    arguments.push(&uri);
    let said = output("qemu-io", &arguments);
    assert!(!said.contains("failed"), "{said}");
    assert!(
        said.contains("wrote 65536/65536 bytes at offset 16777216"),
        "{said}"
    );
    server.scrub();
    server.stop_well();
}

/// Runs fio with random writes and verification of every block.
fn fio_verifies(server: &Server) {
    let aux = server.place().name("");
    let arguments = [
        "--name=verify",
        "--ioengine=nbd",
        &format!("--uri={}", server.uri()),
        "--rw=randwrite",
        "--bssplit=512/20:4k/50:20k/20:128k/10",
        "--iodepth=16",
        "--size=24M",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--randseed=3",
        &format!("--aux-path={aux}"),
    ];
    output("fio", &arguments);
}

#[test]
fn fio_finds_what_it_wrote_at_random() {
    if !installed(&["fio"]) {
        return;
    }
    for volume in [RAID5, RAID6] {
        let server = served(volume, 16);
        fio_verifies(&server);
        server.scrub();
        server.stop_well();
    }
}

#[test]
fn fio_finds_what_it_wrote_while_drives_were_missing() {
    if !installed(&["fio"]) {
        return;
    }
    for volume in [RAID5, RAID6] {
        let server = served(volume, 16);
        for drive in volume.expendable {
            server.ctl(&["fail", drive]);
        }
        fio_verifies(&server);
        server.stop_well();
    }
}

#[test]
fn a_port_of_tcp_serves_as_a_socket_does() {
    if !installed(&["nbdinfo"]) {
        return;
    }
    let server = StackFolder::new(DISK, 32).serve(&["--no-delay", "--tcp", "127.0.0.1:0"]);
    let uris = server.announcement["uris"].as_array().unwrap();
    let port = uris
        .iter()
        .find_map(|uri| uri.as_str().filter(|uri| uri.starts_with("nbd://")))
        .unwrap();
    assert_eq!(
        output("nbdinfo", &["--size", port]).trim(),
        (32 * MIB).to_string()
    );
    assert!(success(&["ctl", server.socket().to_str().unwrap(), "status"]).contains("alive"));
    server.stop_well();
}

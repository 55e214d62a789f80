# Files appended to and closed again in turns, with a sync between; then holes are
# made among large files and filled.
repeat 4
  mkdir t{n}
end
repeat 10
  create t0/x{n} 3MiB
  create t1/y{n} 700KiB
  create t2/z{n} 200KiB
end
sync
repeat 10
  append t0/x{n} 64KiB
  append t1/y{n} 64KiB
  append t2/z{n} 64KiB
end
sync
repeat 10
  append t0/x{n} 300KiB
  append t1/y{n} 30KiB
  append t2/z{n} 10KiB
end
sync
repeat 5
  delete t0/x{n}
  delete t2/z{n}
end
sync
repeat 30
  create t3/w{n} 500KiB
end
sync
create t3/last 40MiB
sync

# Files that grow together, open all the while, as logs and downloads do; then large
# ones, one after the other.
mkdir logs
mkdir large
open logs/a
open logs/b
open logs/c
repeat 100
  append logs/a 4KiB
  append logs/b 16KiB
  append logs/c 100KiB
end
sync
repeat 100
  append logs/a 4KiB
  append logs/b 16KiB
  append logs/c 100KiB
end
close logs/a
close logs/b
close logs/c
repeat 5
  create large/f{n} 30MiB
end
sync

# A backup's large files, written one after another and made durable.
mkdir night
repeat 6
  create night/archive{n} 64MiB
  fsync night/archive{n}
end

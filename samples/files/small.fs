# Many small files in several directories, some deleted, others created again.
repeat 6
  mkdir d{n}
end
repeat 80
  create d0/a{n} 4KiB
  create d1/b{n} 9000
  create d2/c{n} 20KiB
  create d3/d{n} 60KiB
  create d4/e{n} 100KiB
end
sync
repeat 40
  delete d1/b{n}
  delete d3/d{n}
  delete d4/e{n}
end
sync
repeat 60
  create d5/f{n} 30KiB
  create d1/g{n} 7000
  create d3/h{n} 150KiB
end
sync

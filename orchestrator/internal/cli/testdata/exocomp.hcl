data_dir    = "/var/lib/exocomp"
runtime_dir = "/run/exocomp"

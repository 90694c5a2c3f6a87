# By the name of the workspace. The first apply records, without a run, what is as
# the configuration says.
tofu import exocomp_provision.web web

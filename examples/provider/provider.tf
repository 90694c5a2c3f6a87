terraform {
  required_providers {
    exocomp = {
      source = "exocomp/exocomp"
    }
  }
}

# The daemon of this machine; nothing needs to be set.
provider "exocomp" {}

terraform {
  required_version = ">= 1.8"
  required_providers {
    exocomp = {
      source = "exocomp/exocomp"
    }
  }
}

provider "exocomp" {}

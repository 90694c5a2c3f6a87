terraform {
  required_version = ">= 1.11"
  required_providers {
    exocomp = {
      source = "exocomp/exocomp"
    }
  }
}

provider "exocomp" {}

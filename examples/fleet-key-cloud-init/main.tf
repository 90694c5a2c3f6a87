# The machine gets the daemon's public key at first boot, so that nobody needs
# another credential.

variable "address" {
  description = "Address of a machine that lets root in with a key of the daemon's host."
  type        = string
}

data "exocomp_fleet_key" "this" {}

locals {
  user_data = <<-EOT
    #cloud-config
    ssh_authorized_keys:
      - ${data.exocomp_fleet_key.this.public_key}
  EOT
}

# In a cloud:
#
#   resource "hcloud_server" "web1" {
#     name        = "web1"
#     image       = "debian-12"
#     server_type = "cx22"
#     user_data   = local.user_data
#
#     lifecycle {
#       ignore_changes = [user_data]
#     }
#   }
#
# A rotated fleet key changes the user data, and changed user data replaces the
# machine: that is what ignore_changes is for.
resource "terraform_data" "web1" {
  input = { address = var.address, user_data = local.user_data }

  lifecycle {
    ignore_changes = [input]
  }
}

resource "exocomp_provision" "web" {
  workspace = "web"
  playbook  = "ansible/site.yml"

  inventory = {
    web1 = {
      ansible_host = terraform_data.web1.output.address
      ansible_user = "root"
    }
  }
}

# An interrupted apply is a warning, so that the next one goes on where it was. Who
# must know that the machines are ready, a pipeline say, asks for the status.

variable "address" {
  description = "Address of a machine that lets root in with a key of the daemon's host."
  type        = string
}

# In a cloud this is the machine:
#
#   resource "hcloud_server" "web1" {
#     name        = "web1"
#     image       = "debian-12"
#     server_type = "cx22"
#     ssh_keys    = ["ops"]
#   }
#
# and its address is hcloud_server.web1.ipv4_address. Here it stands already.
resource "terraform_data" "web1" {
  input = { address = var.address }
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

  lifecycle {
    postcondition {
      condition     = self.status == "succeeded"
      error_message = "Run ${coalesce(self.run_id, "(none yet)")} is ${self.status}: apply again to follow it."
    }
  }
}

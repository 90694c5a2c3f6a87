# One apply makes a machine and has it onboarded and configured.

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

  # How the daemon logs in before it has onboarded the host: a key file on its own
  # machine. Not needed where the host has the fleet key, see fleet-key-cloud-init.
  ssh_identities = ["/etc/exocomp/id_ed25519"]
}

output "status" {
  value = exocomp_provision.web.status
}

# Before the machine goes, a playbook takes it out of where it is known.

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

  # Run once at destroy, before the machine is destroyed, and only if the machine
  # was ever provisioned. It gets the variables, but no secrets.
  destroy_playbook = "ansible/leave.yml"

  inventory = {
    web1 = {
      ansible_host = terraform_data.web1.output.address
      ansible_user = "root"
    }
  }

  vars = {
    balancer = "lb.example.org"
  }

  timeouts = {
    delete = "10m"
  }
}

# Secrets reach the playbook and are written nowhere: not to the plan, not to the
# state, not to a log.

variable "address" {
  description = "Address of a machine that lets root in with a key of the daemon's host."
  type        = string
}

variable "db_password" {
  description = "Password of the database."
  type        = string
  ephemeral   = true # not even in a saved plan
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

  # OpenTofu does not know whether a write-only value has changed: the version says
  # so.
  secrets_wo         = { DB_PASSWORD = var.db_password }
  secrets_wo_version = "1"
}

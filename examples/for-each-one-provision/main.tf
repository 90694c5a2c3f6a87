# Any number of machines, and one resource that provisions them together. A
# for_each on exocomp_provision itself would have its instances take the workspace
# from one another: the second is refused.

variable "machines" {
  description = "Address and role of each machine, by its name."
  type        = map(object({ address = string, role = string }))
  default = {
    web1 = { address = "192.0.2.11", role = "web" }
    web2 = { address = "192.0.2.12", role = "web" }
    db1  = { address = "192.0.2.21", role = "db" }
  }
}

# In a cloud: resource "hcloud_server" "machine" { for_each = var.machines … }
resource "terraform_data" "machine" {
  for_each = var.machines
  input    = { address = each.value.address }
}

resource "exocomp_provision" "fleet" {
  workspace = "fleet"
  playbook  = "ansible/site.yml"

  # An inventory tree: a group for each role.
  inventory = {
    all = {
      vars = { ansible_user = "root" }
      children = {
        for role in distinct(values(var.machines)[*].role) : role => {
          hosts = {
            for name, machine in var.machines : name => {
              ansible_host = terraform_data.machine[name].output.address
            } if machine.role == role
          }
        }
      }
    }
  }
}

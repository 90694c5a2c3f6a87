# Every attribute of the resource as a variable.

variable "socket" {}
variable "token_file" {}
variable "workspace" { default = "edge" }
variable "playbook" {}
variable "onboard_playbook" { default = null }
variable "destroy_playbook" { default = null }
variable "ssh_wait" { default = null }
variable "vars" { default = null }
variable "triggers" { default = null }
variable "secrets_version" { default = null }
variable "inventory" {
  default = {
    web1 = { ansible_host = "192.0.2.11", ansible_user = "root" }
    web2 = { ansible_host = "192.0.2.12", ansible_port = 2222 }
  }
}
variable "timeout" { default = "1h" }

provider "exocomp" {
  socket     = var.socket
  token_file = var.token_file
}

resource "exocomp_provision" "this" {
  workspace          = var.workspace
  inventory          = var.inventory
  playbook           = var.playbook
  onboard_playbook   = var.onboard_playbook
  destroy_playbook   = var.destroy_playbook
  ssh_wait           = var.ssh_wait
  vars               = var.vars
  triggers           = var.triggers
  secrets_wo_version = var.secrets_version

  timeouts = {
    create = var.timeout
    update = var.timeout
  }
}

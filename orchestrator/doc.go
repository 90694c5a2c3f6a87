// Package orchestrator is the domain of exocomp: what a workspace, a run, a
// step, a job, an inventory and a pin are, which transitions they may make, and
// the one error type. It knows no technology and imports only the standard
// library; every other package speaks its types.
//
// # Glossary
//
//   - workspace: a named OpenTofu root module that the daemon may apply. Its
//     name gives the standing inventory `tf:<workspace>`.
//   - run: one chain of steps under one id. See [Run], [RunKind].
//   - step: one link of a chain. See [Step], [StepKind], [StepState].
//   - job: one execution on the one queue: an attempt of a step, or
//     standalone. See [Job].
//   - attempt: what a job's execution is called on disk: a number, a short
//     public id that names its directories, and a random token. See [Attempt].
//   - phase: one supervised tool of an attempt (`init`, `plan`, `apply`,
//     `onboard`, `verify`, `play`); its control directory is
//     `control/<attempt>/<phase>`.
//   - schedule: work that is started again and again against one standing
//     inventory. See [Schedule].
//   - fire: one instant of a schedule and what became of it. See [Fire].
//   - turn: a place in a workspace's queue; the oldest open turn holds the
//     workspace. See [Turn].
//   - admission: the ledger's word that a host's key is pinned and the host
//     was onboarded. See [Admission].
//   - pin: a recorded host key. See [Pin].
//   - event: an append-only line of history. See [Event].
package orchestrator

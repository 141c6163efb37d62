/// What may be in the folder after a process was killed: of what it has told to be done, all; of what it was doing, each part or
/// none of it.
struct KillModel {
  /// By key number; a key that has no value has none in the folder either.
  private(set) var values: [Int: Value] = [:]

  /// What may be found under a key.
  private var allowed: [Int: Set<Value?>] = [:]
  /// It was removing everything: either all is gone, or nothing.
  private var wasRemovingAll = false
  private var mayEvict = false
  /// What is counted of what was seen.
  private(set) var tallies: [String: Int] = [:]

  /// Goes through what the process has done.
  ///
  /// - Parameters:
  ///   - done: the numbers of the operations that it has told to be done.
  ///   - evicts: whether any entry may have been evicted.
  mutating func replay(_ plan: KillPlan, done: Set<Int>, evicts: Bool) throws {
    var plan = plan
    var number = 0
    (allowed, wasRemovingAll, mayEvict) = ([:], false, evicts)
    while true {
      let batch = plan.batch()
      let numbers = number..<number + batch.count
      for (operation, number) in zip(batch, numbers) { apply(operation, isDone: done.contains(number)) }
      number += batch.count
      if !done.isSuperset(of: numbers) { break }
    }
    try require(done.allSatisfy { $0 < number }, "a process went on before it had told what it had done")
    if evicts { for key in 0..<KillPlan.keys { allowed[key, default: [values[key]]].insert(nil) } }
  }

  private mutating func apply(_ operation: KillPlan.Operation, isDone: Bool) {
    let changed: (key: Int, value: Value?)
    switch operation {
    case .store(let key, let value): changed = (key, value)
    case .refresh(let key, let freshening):
      guard var value = values[key] else { return }
      value.freshening = freshening
      changed = (key, value)
    case .remove(let key): changed = (key, nil)
    case .removeOther, .read: return
    case .removeAll:
      if isDone { values = [:] } else { wasRemovingAll = true }
      return
    }
    if isDone {
      values[changed.key] = changed.value
      tallies["done", default: 0] += 1
    } else {
      allowed[changed.key] = [values[changed.key], changed.value]
      tallies["under way", default: 0] += 1
    }
  }

  /// Compares what was found with what may be there, and goes on from what was found.
  mutating func settle(_ found: [Int: Value]) throws {
    if wasRemovingAll {
      tallies["removals of everything cut short", default: 0] += 1
      let isWhole = mayEvict ? found.allSatisfy { values[$0.key] == $0.value } : found == values
      try require(found.isEmpty || isWhole, "everything was being removed: \(found.count) of \(values.count) are left")
    } else {
      for key in 0..<KillPlan.keys {
        let fits = allowed[key].map { $0.contains(found[key]) } ?? (values[key] == found[key])
        try require(fits, lost(key, found[key]))
        if !mayEvict, let outcomes = allowed[key], outcomes.count > 1, found[key] != values[key] {
          tallies["of those, came through", default: 0] += 1
        }
      }
    }
    values = found
  }

  private func lost(_ key: Int, _ found: Value?) -> String {
    func text(_ value: Value?) -> String { value.map { "value \($0.number), freshened \($0.freshening)" } ?? "nothing" }
    let wanted = allowed[key].map { $0.map(text).sorted().joined(separator: " or ") } ?? text(values[key])
    return "\(Keys.key(key)): \(text(found)) is there, and not \(wanted)"
  }

  /// Stored by the one who looks.
  mutating func store(_ key: Int, _ value: Value) { values[key] = value }
}

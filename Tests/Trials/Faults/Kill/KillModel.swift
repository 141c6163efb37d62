/// The allowed contents of the folder after a process was killed: every completed operation, and each operation in progress
/// completely or not at all.
struct KillModel {
  /// The values by key number. A key without a value must not be in the folder.
  private(set) var values: [Int: Value] = [:]

  /// The allowed values of each key.
  private var allowed: [Int: Set<Value?>] = [:]
  /// Whether all entries were being removed, so that all or none of them must be left.
  private var wasRemovingAll = false
  private var mayEvict = false
  /// The numbers of observed outcomes.
  private(set) var tallies: [String: Int] = [:]

  /// Replays the operations of the process.
  ///
  /// - Parameters:
  ///   - done: The numbers of the operations that the process reported as done.
  ///   - evicts: Whether any entry may have been evicted.
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
    try require(done.allSatisfy { $0 < number }, "a process continued before it reported its operations")
    if evicts { for key in 0..<KillPlan.keys { allowed[key, default: [values[key]]].insert(nil) } }
  }

  private mutating func apply(_ operation: KillPlan.Operation, isDone: Bool) {
    let changed: (key: Int, value: Value?)
    switch operation {
    case .store(let key, let value): changed = (key, value)
    case .refresh(let key, let updateCount):
      guard var value = values[key] else { return }
      value.updateCount = updateCount
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
      tallies["in progress", default: 0] += 1
    }
  }

  /// Compares the contents of the folder with the allowed ones and continues with them.
  mutating func settle(_ found: [Int: Value]) throws {
    if wasRemovingAll {
      tallies["interrupted removals of all entries", default: 0] += 1
      let isWhole = mayEvict ? found.allSatisfy { values[$0.key] == $0.value } : found == values
      try require(found.isEmpty || isWhole, "an interrupted removal of all left \(found.count) of \(values.count)")
    } else {
      for key in 0..<KillPlan.keys {
        let fits = allowed[key].map { $0.contains(found[key]) } ?? (values[key] == found[key])
        try require(fits, lost(key, found[key]))
        if !mayEvict, let outcomes = allowed[key], outcomes.count > 1, found[key] != values[key] {
          tallies["of those, completed", default: 0] += 1
        }
      }
    }
    values = found
  }

  private func lost(_ key: Int, _ found: Value?) -> String {
    func text(_ value: Value?) -> String { value.map { "value \($0.number), update \($0.updateCount)" } ?? "nothing" }
    let wanted = allowed[key].map { $0.map(text).sorted().joined(separator: " or ") } ?? text(values[key])
    return "\(Keys.key(key)): found \(text(found)), not \(wanted)"
  }

  /// Records a value that the checking process has stored.
  mutating func store(_ key: Int, _ value: Value) { values[key] = value }
}

internal import CacheCore

/// Who is next: the most urgent first, and among equals who came first. Every step costs O(1), however many wait.
struct PrefetchLine {
  private struct Lane {
    var ids: [Int] = []
    var head = 0

    mutating func next() -> Int? {
      guard head < ids.count else { return nil }
      head += 1
      let id = ids[head - 1]
      if head > 32, head * 2 > ids.count {
        ids.removeFirst(head)
        head = 0
      }
      return id
    }
  }

  /// One for each level of urgency, the least urgent first.
  private var lanes = LoadPriority.Level.allCases.map { _ in Lane() }
  /// Where those stand who wait. Who has risen, or gone, is passed over where he stood before.
  private var levels: [Int: LoadPriority.Level] = [:]

  var isEmpty: Bool { levels.isEmpty }

  func contains(_ id: Int) -> Bool { levels[id] != nil }

  mutating func append(_ id: Int, _ level: LoadPriority.Level) {
    levels[id] = level
    lanes[level.rawValue].ids.append(id)
  }

  /// Moves somebody behind those who are as urgent; does nothing for whom is not there, or is as urgent already.
  mutating func raise(_ id: Int, to level: LoadPriority.Level) {
    guard let former = levels[id], former < level else { return }
    append(id, level)
  }

  mutating func remove(_ id: Int) { levels[id] = nil }

  /// Takes the next one out.
  mutating func next() -> Int? {
    for level in LoadPriority.Level.allCases.reversed() {
      while let id = lanes[level.rawValue].next() {
        guard levels[id] == level else { continue }
        levels[id] = nil
        return id
      }
    }
    return nil
  }
}

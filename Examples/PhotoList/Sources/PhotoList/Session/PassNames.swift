/// The names of the passes. A name states what has happened since the previous pass of the same kind of views.
struct PassNames: Sendable {
  /// The name of the current pass.
  private(set) var current = ""
  /// The last word of the next pass's name, by kind of views. A kind that is missing has had no pass.
  private var next: [String: String] = [:]

  /// Begins a pass of a kind of views.
  mutating func begin(_ loader: String) {
    current = "\(loader), \(next[loader] ?? "first")"
    next[loader] = "again"
  }

  mutating func serverChanged() { next = next.mapValues { _ in "changed" } }

  mutating func cachesCleared() { next = [:] }
}

#if Demo
import Etagere

/// One line at the bottom of a terminal: the part of the work that is done. Without a terminal, it draws nothing.
final class ProgressBar: Sendable {
  private struct State {
    var total: Int
    var finished = 0
    var transfers: [Int: LoadProgress] = [:]
    var lastDrawing: Duration?
  }

  private static let width = 30
  private let isShown: Bool
  private let clock = SystemClock()
  private let state: Lock<State>

  init(total: Int, isShown: Bool) {
    self.isShown = isShown
    state = Lock(State(total: total))
  }

  /// Counts the bytes of a running transfer.
  func update(_ index: Int, _ progress: LoadProgress) { draw { $0.transfers[index] = progress } }

  func finish(_ index: Int) {
    draw(always: true) {
      $0.finished += 1
      $0.transfers[index] = nil
    }
  }

  /// Takes over the counts of a prefetcher, which merges equal requests.
  func update(finished: Int, of total: Int) {
    draw(always: finished == total) { ($0.finished, $0.total) = (finished, total) }
  }

  func clear() {
    guard isShown else { return }
    Console.clearBar()
  }

  private func draw(always: Bool = false, _ change: (inout State) -> Void) {
    guard isShown else { return }
    let now = clock.uptime
    let line = state.withLock { state -> String? in
      change(&state)
      // A terminal needs no more than 20 lines a second.
      if !always, let last = state.lastDrawing, now - last < .milliseconds(50) { return nil }
      state.lastDrawing = now
      let share = state.transfers.values.reduce(Double(state.finished)) { $0 + ($1.fraction ?? 0) } / Double(max(1, state.total))
      let bytes = state.transfers.values.reduce(Int64(0)) { $0 + $1.received }
      return "\(Self.bar(share)) \(state.finished)/\(state.total)" + (bytes > 0 ? "  \(Text.bytes(bytes))" : "")
    }
    if let line { Console.drawBar(line) }
  }

  /// A bar that is filled up to a share between 0 and 1.
  static func bar(_ share: Double) -> String {
    let full = share.isFinite ? min(width, max(0, Int(share * Double(width)))) : 0
    return "[\(String(repeating: "#", count: full))\(String(repeating: "-", count: width - full))]"
  }

  /// A bar with a mark that moves back and forth, for work of unknown length.
  static func activity(_ step: Int) -> String {
    let (mark, path) = (5, width - 5)
    let place = step % (path * 2)
    let left = place <= path ? place : path * 2 - place
    let track = { (count: Int) in String(repeating: "-", count: count) }
    return "[\(track(left))\(String(repeating: "#", count: mark))\(track(path - left))]"
  }

  /// Draws a line ten times a second while work runs.
  ///
  /// - Parameter line: Returns the line after this time.
  static func during<Value: Sendable, Failure: Error>(
    isShown: Bool, _ line: @escaping @Sendable (Duration) -> String,
    _ work: () async throws(Failure) -> Value
  ) async throws(Failure) -> Value {
    guard isShown else { return try await work() }
    let clock = SystemClock()
    let start = clock.uptime
    Console.drawBar(line(.zero))
    let ticker = Task {
      while !Task.isCancelled {
        try? await clock.sleep(for: .milliseconds(100))
        if !Task.isCancelled { Console.drawBar(line(clock.uptime - start)) }
      }
    }
    let result: Result<Value, Failure>
    do throws(Failure) {
      result = .success(try await work())
    } catch {
      result = .failure(error)
    }
    ticker.cancel()
    await ticker.value
    Console.clearBar()
    return try result.get()
  }
}
#endif

#if Tool
import Etagere
import Foundation

/// One line at the bottom of a terminal: how many of how many, and how far the transfers are. Nothing at all where standard error
/// is no terminal.
actor ProgressBar {
  private let total: Int
  private let isShown: Bool
  private var finished = 0
  private var transfers: [Int: LoadProgress] = [:]

  init(total: Int, isShown: Bool = Console.isErrorTerminal) {
    self.total = total
    self.isShown = isShown
  }

  func update(_ index: Int, _ progress: LoadProgress) {
    transfers[index] = progress
    draw()
  }

  func finish(_ index: Int) {
    finished += 1
    transfers[index] = nil
    draw()
  }

  /// Makes room for a line of text.
  func clear() {
    guard isShown else { return }
    Console.draw("\r\u{1B}[K")
  }

  private func draw() {
    guard isShown else { return }
    let share = transfers.values.reduce(Double(finished)) { $0 + ($1.fraction ?? 0) } / Double(max(1, total))
    let width = 30
    let full = min(width, max(0, Int(share * Double(width))))
    let bar = String(repeating: "#", count: full) + String(repeating: "-", count: width - full)
    let bytes = transfers.values.reduce(Int64(0)) { $0 + $1.received }
    let line = "\r\u{1B}[K[\(bar)] \(finished)/\(total)  \(Text.bytes(bytes)) under way"
    Console.draw(line)
  }
}
#endif

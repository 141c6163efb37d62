internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The items of a prefetcher that wait or run, and the results of those that have ended.
struct PrefetchAccounting {
  /// The number of an item, in the order in which the items were added.
  typealias Number = PriorityQueue.Ticket

  struct Item: Sendable {
    var load: ResolvedRequest
    var key: CoalescingKey
    var task: LoadTask
  }

  enum Entry {
    /// The item waits now.
    case new
    /// An equal item waits or runs already.
    case duplicate(of: Item)
  }

  private var queue = PriorityQueue()
  /// The items that wait and those that run. Their numbers follow the order in which they were added.
  private var items: [Number: Item] = [:]
  private var numbers: [CoalescingKey: Number] = [:]
  private var last: Number = 0
  /// The latest failures, and at most as many earlier ones. The array is cut when it has twice as many failures as a report
  /// lists.
  private var failures: [(number: Number, url: URL, error: CacheError)] = []
  private var listed = PrefetchReport.listedFailures
  private var duplicates = 0
  private(set) var progress = PrefetchProgress()

  /// Makes room for the failures of one call with `count` requests. If all of them fail, the report lists them all.
  mutating func expect(_ count: Int) { listed = max(listed, count) }

  /// Returns the number of the next item.
  mutating func nextNumber() -> Number {
    last += 1
    return last
  }

  mutating func enter(_ item: Item, as number: Number) -> Entry {
    // A request with a method other than GET has an effect each time it is sent, so it is never a duplicate.
    if item.load.head.method == .get, let former = numbers[item.key].flatMap({ items[$0] }) {
      duplicates += 1
      return .duplicate(of: former)
    }
    progress.total += 1
    items[number] = item
    numbers[item.key] = number
    queue.insert(number, item.task.priority.level)
    return .new
  }

  /// Records the failure of a request that cannot be made.
  mutating func refuse(_ url: URL, _ error: CacheError) {
    progress.total += 1
    fail(nextNumber(), url, error)
  }

  mutating func raise(_ number: Number, to level: LoadPriority.Level) { queue.raise(number, to: level) }

  /// Returns the next item, which runs from now on, or `nil` if no item waits.
  mutating func begin() -> (number: Number, item: Item)? {
    guard let number = queue.next(), let item = items[number] else { return nil }
    queue.remove(number)
    progress.running += 1
    return (number, item)
  }

  /// Records the end of an item that was running.
  mutating func end(_ number: Number, _ result: Result<Resource<Void>, CacheError>) {
    guard let item = take(number) else { return }
    progress.running -= 1
    switch result {
    case .failure(let error): fail(number, item.load.url, error)
    case .success(let resource):
      switch resource.source {
      case .memory, .disk: if resource.validation == .failed { progress.unconfirmed += 1 } else { progress.skipped += 1 }
      case .revalidated, .network, .schemeHandler: progress.loaded += 1
      }
    }
  }

  /// Removes the waiting items that `isMeant` selects, and records them as cancelled.
  mutating func cancelWaiting(_ isMeant: (URL) -> Bool) -> [Item] {
    let meant = items.filter { queue.contains($0.key) && isMeant($0.value.load.url) }.keys.sorted()
    return meant.compactMap { number in
      queue.remove(number)
      guard let item = take(number) else { return nil }
      fail(number, item.load.url, .cancelled.about(item.load.address))
      return item
    }
  }

  func running(_ isMeant: (URL) -> Bool) -> [Item] {
    items.filter { !queue.contains($0.key) && isMeant($0.value.load.url) }.map(\.value)
  }

  var report: PrefetchReport {
    var report = PrefetchReport()
    (report.loaded, report.skipped) = (progress.loaded, progress.skipped)
    (report.unconfirmed, report.duplicates) = (progress.unconfirmed, duplicates)
    let latest = failures.suffix(listed)
    report.unlistedFailures = progress.failed - latest.count
    report.failed = latest.sorted { $0.number < $1.number }.map { ($0.url, $0.error) }
    return report
  }

  private mutating func take(_ number: Number) -> Item? {
    guard let item = items.removeValue(forKey: number) else { return nil }
    if numbers[item.key] == number { numbers[item.key] = nil }
    return item
  }

  private mutating func fail(_ number: Number, _ url: URL, _ error: CacheError) {
    progress.failed += 1
    failures.append((number, url, error))
    if failures.count >= 2 * listed { failures.removeFirst(failures.count - listed) }
  }
}

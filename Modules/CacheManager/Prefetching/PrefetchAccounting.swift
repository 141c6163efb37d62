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
    /// The observation that moves the item to the front of the queue when its priority is raised.
    var observation: LoadPriority.Observation?
  }

  enum Entry {
    /// The item waits now.
    case new
    /// An equal item is already waiting or running.
    case duplicate(of: Item)
  }

  private var queue = PriorityQueue()
  /// The items that wait and those that run. Their numbers follow the order in which they were added.
  private var items: [Number: Item] = [:]
  private var numbers: [CoalescingKey: Number] = [:]
  private var last: Number = 0
  /// The latest failures, and at most as many earlier ones. The array is cut when it contains twice as many failures as a report
  /// lists.
  private var failures: [(number: Number, url: URL, error: CacheError)] = []
  private var listed = PrefetchReport.listedFailures
  private var duplicates = 0
  private(set) var progress = PrefetchProgress()

  /// An item that ended with a stored response, with the number that counts it.
  struct StoredItem: Sendable {
    let number: Number
    let url: URL
    let key: CacheKey
    let store: any CacheStore
    let count: any WritableKeyPath<PrefetchProgress, Int> & Sendable
  }

  private let remembersStored: Bool
  /// The items that ended since the last check.
  private var stored: [StoredItem] = []
  /// The load of the last of them, with whose observer and time limits the check reads the stores.
  private var lastStored: ResolvedRequest?

  /// - Parameter remembersStored: Whether the stored responses must be there at the end of the prefetch.
  init(remembersStored: Bool) { self.remembersStored = remembersStored }

  /// Makes room for the failures of one call with `count` requests, so that the report can list all of them.
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
  mutating func refuse(_ url: URL, _ error: CacheError, as number: Number) {
    progress.total += 1
    fail(number, url, error)
  }

  mutating func raise(_ number: Number, to level: LoadPriority.Level) { queue.raise(number, to: level) }

  /// Returns the next item, which then counts as running, or `nil` if no item waits.
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
      let count: any WritableKeyPath<PrefetchProgress, Int> & Sendable =
        switch resource.source {
        case .memory, .disk: resource.validation == .failed ? \.unconfirmed : \.skipped
        case .revalidated, .network, .schemeHandler: \.loaded
        }
      progress[keyPath: count] += 1
      if remembersStored, let store = item.load.store {
        lastStored = item.load
        stored.append(StoredItem(number: number, url: item.load.url, key: resource.key, store: store, count: count))
      }
    }
  }

  /// Returns the stored items to look for when no work is left, if any. The last of them counts as running until the check ends.
  ///
  /// A single item stays for the next check, because a store evicts no entry for itself.
  mutating func beginCheck() -> (items: [StoredItem], load: ResolvedRequest)? {
    guard progress.isFinished, stored.count > 1, let last = stored.last, let load = lastStored.take() else { return nil }
    defer { stored = [] }
    progress[keyPath: last.count] -= 1
    progress.running += 1
    return (stored, load)
  }

  /// Records the end of a check.
  mutating func endCheck(of checked: [StoredItem], missing: Set<Number>) {
    progress.running -= 1
    if let last = checked.last { progress[keyPath: last.count] += 1 }
    for item in checked where missing.contains(item.number) {
      progress[keyPath: item.count] -= 1
      fail(
        item.number, item.url,
        CacheError(
          .notCached, reason: "the response was stored, but the store no longer has it and may be too small",
          url: item.url.address))
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

#if Origin
internal import CacheCore
#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

extension HTTPDate {
  /// Creates an HTTP date from a Foundation date, rounded down to whole seconds.
  init(_ date: Date) {
    let seconds = date.timeIntervalSince1970.rounded(.down)
    self.init(Timestamp(seconds: Int64(exactly: seconds) ?? (seconds < 0 ? .min : .max)))
  }
}
#endif

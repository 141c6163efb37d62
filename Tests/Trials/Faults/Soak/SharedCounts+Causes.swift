#if Redis && Origin && Service && SQLite
import CacheCore
import Foundation

/// The disturbances that can explain the failure of an operation, and their times.
///
/// An error can arrive after its cause has ended. A transfer that has become silent fails only after the idle time of the engine,
/// and a load can join an earlier one. An operation that starts within these times after a disturbance is therefore explained.
extension SharedCounts {
  /// The resource or the image that an operation needs from the origin.
  enum Source {
    case resource(Int)
    case image(Int)

    fileprivate var index: Int {
      switch self {
      case .resource(let number): number
      case .image(let number): VersionedResource.count + number
      }
    }

    /// The longest time from a fault of the origin to the end of the failed transfer: the idle time of the engine, which is 5 s,
    /// and 10 s in the service.
    fileprivate var delay: Duration {
      switch self {
      case .resource: .seconds(7)
      case .image: .seconds(12)
      }
    }

    static let count = VersionedResource.count + SoakOrigin.images
  }

  /// The longest time until a process notices the end of a condition of its disk. It may be stopped.
  private static let noticeTime = Duration.seconds(4)

  private static var now: Int64 { SystemClock().uptime.saturatedNanoseconds }

  // MARK: Disturbances

  /// Records that the origin sends a response that a client must refuse.
  func addFault(_ source: Source) { words.raise(Self.firstFault + source.index, to: UInt64(Self.now)) }

  /// Records that the origin receives a request.
  func addRequest(_ source: Source) { words.raise(Self.firstFault + Source.count + source.index, to: UInt64(Self.now)) }

  /// Starts a time in which the origin cannot be reached, or in which a process is stopped or does not exist.
  func begin(_ condition: Condition, _ member: SoakMember) { set(condition, member, to: .max) }

  /// Ends such a time.
  func end(_ condition: Condition, _ member: SoakMember) { set(condition, member, to: Self.now) }

  /// Returns whether a condition that is recorded with the time of its end lasts, or has lasted at a time since `start`.
  private func has(_ condition: Condition, _ member: SoakMember, since start: Duration) -> Bool {
    let end = self.condition(condition, member)
    return end > 0 && end >= start.saturatedNanoseconds
  }

  // MARK: Explanations

  /// Returns whether a disturbance explains that an operation of a member fails.
  func explainsFailure(of source: Source, _ member: SoakMember, since start: Duration) -> Bool {
    let start = start - source.delay
    return words[Self.firstFault + source.index] >= UInt64(max(1, start.saturatedNanoseconds))
      || has(.originOffline, .node, since: start) || has(.interrupted, member, since: start)
  }

  /// Describes the times of an operation and of the last disturbances that could have explained its failure.
  func times(of source: Source, _ member: SoakMember, since start: Duration) -> String {
    let texts = [
      ("request to the origin", Int64(clamping: words[Self.firstFault + Source.count + source.index])),
      ("fault of the origin", Int64(clamping: words[Self.firstFault + source.index])),
      ("offline origin", condition(.originOffline, .node)), ("interruption", condition(.interrupted, member)),
      ("failure of the disk", condition(.diskFailure, member)),
    ].map { name, time in
      time == 0 ? "no \(name)" : "last \(name) \(Self.seconds(start - .nanoseconds(time))) before it"
    }
    return "after \(Self.seconds(.nanoseconds(Self.now) - start)), \(texts.joined(separator: ", "))"
  }

  private static func seconds(_ time: Duration) -> String { "\((time / .milliseconds(100)).rounded() / 10) s" }

  /// Returns whether the disk of a member failed, or its files were limited, at some time of an operation.
  func explainsStorageFailure(_ member: SoakMember, since start: Duration) -> Bool {
    has(.diskFailure, member, since: start - Self.noticeTime)
  }
}
#endif

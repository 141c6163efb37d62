// Declarations of WidgetKit.
//
// Source: Apple's documentation of TimelineProvider, TimelineEntry and Timeline (iOS 18 SDK).
@_exported public import AppleFoundation

public protocol TimelineEntry {
  var date: Date { get }
}

public struct TimelineReloadPolicy: Equatable, Sendable {
  public static let atEnd = TimelineReloadPolicy()
  public static let never = TimelineReloadPolicy()
  public static func after(_ date: Date) -> TimelineReloadPolicy { fatalError() }
}

public struct Timeline<EntryType: TimelineEntry> {
  public let entries: [EntryType]
  public let policy: TimelineReloadPolicy
  public init(entries: [EntryType], policy: TimelineReloadPolicy) {
    self.entries = entries
    self.policy = policy
  }
}

extension Timeline: Sendable where EntryType: Sendable {}

public struct TimelineProviderContext {
  public let displaySize: CGSize
  public let isPreview: Bool
}

public protocol TimelineProvider {
  associatedtype Entry: TimelineEntry
  typealias Context = TimelineProviderContext
  func placeholder(in context: Context) -> Entry
  @preconcurrency func getSnapshot(in context: Context, completion: @escaping @Sendable (Entry) -> Void)
  @preconcurrency func getTimeline(in context: Context, completion: @escaping @Sendable (Timeline<Entry>) -> Void)
}

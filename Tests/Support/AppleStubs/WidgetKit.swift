// Declarations of WidgetKit and of SwiftUI for widgets.
//
// Source: Apple's documentation of WidgetKit and SwiftUI (iOS 18 SDK).
@_exported public import AppleFoundation
public import SwiftUI

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
  public init(entries: [EntryType], policy: TimelineReloadPolicy) { (self.entries, self.policy) = (entries, policy) }
}

extension Timeline: Sendable where EntryType: Sendable {}

public struct TimelineProviderContext {
  public let displaySize: CGSize
  public let isPreview: Bool
}

public protocol TimelineProvider {
  associatedtype Entry: TimelineEntry
  typealias Context = TimelineProviderContext
  func placeholder(in context: Self.Context) -> Self.Entry
  @preconcurrency func getSnapshot(in context: Self.Context, completion: @escaping @Sendable (Self.Entry) -> Void)
  @preconcurrency func getTimeline(in context: Self.Context, completion: @escaping @Sendable (Timeline<Self.Entry>) -> Void)
}

public enum WidgetFamily: Int, Sendable { case systemSmall, systemMedium, systemLarge, systemExtraLarge }

@MainActor @preconcurrency
public protocol WidgetConfiguration {
  associatedtype Body: WidgetConfiguration
  @MainActor @preconcurrency var body: Body { get }
}

extension Never: WidgetConfiguration {}

@MainActor @preconcurrency
public protocol Widget {
  associatedtype Body: WidgetConfiguration
  @MainActor @preconcurrency init()
  @MainActor @preconcurrency var body: Body { get }
}

@MainActor @preconcurrency
public struct StaticConfiguration<Content: View>: WidgetConfiguration {
  @MainActor @preconcurrency
  public init<Provider: TimelineProvider>(
    kind: String, provider: Provider, @ViewBuilder content: @escaping (Provider.Entry) -> Content
  ) { fatalError() }
  public var body: Never { fatalError() }
}

extension WidgetConfiguration {
  @MainActor @preconcurrency
  public func configurationDisplayName(_ displayNameKey: LocalizedStringKey) -> some WidgetConfiguration { self }
  @MainActor @preconcurrency
  public func description(_ descriptionKey: LocalizedStringKey) -> some WidgetConfiguration { self }
  @MainActor @preconcurrency
  public func supportedFamilies(_ families: [WidgetFamily]) -> some WidgetConfiguration { self }
}

public class WidgetCenter {
  nonisolated(unsafe) public static let shared = WidgetCenter()
  public func reloadTimelines(ofKind kind: String) { fatalError() }
  public func reloadAllTimelines() { fatalError() }
}

public struct ContainerBackgroundPlacement: Sendable {
  public static let widget = ContainerBackgroundPlacement()
}

extension View {
  nonisolated public func containerBackground<V: View>(
    for container: ContainerBackgroundPlacement, alignment: Alignment = .center, @ViewBuilder content: () -> V
  ) -> some View { EmptyView() }
}

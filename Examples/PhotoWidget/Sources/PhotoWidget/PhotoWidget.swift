#if canImport(WidgetKit)
import CacheUI
import Foundation
import SwiftUI
import WidgetKit

extension PhotoEntry: TimelineEntry {}

/// The provider of the widget, which runs in the process of the extension.
struct PhotoProvider: TimelineProvider {
  func placeholder(in context: Context) -> PhotoEntry { PhotoEntry(date: .now) }

  func getSnapshot(in context: Context, completion: @escaping @Sendable (PhotoEntry) -> Void) {
    Task { completion(await timeline().entries.first ?? PhotoEntry(date: .now)) }
  }

  func getTimeline(in context: Context, completion: @escaping @Sendable (Timeline<PhotoEntry>) -> Void) {
    Task {
      let timeline = await timeline()
      completion(Timeline(entries: timeline.entries, policy: .after(timeline.end)))
    }
  }

  private func timeline() async -> PhotoTimeline { await .make(from: .now, opening: SharedPhotos.open) }
}

/// The widget. Its view is drawn once and cannot load, so the entry has the decoded image.
struct PhotoWidget: Widget {
  var body: some WidgetConfiguration {
    StaticConfiguration(kind: SharedPhotos.widgetKind, provider: PhotoProvider()) { PhotoEntryView(entry: $0) }
      .configurationDisplayName("Photos")
      .description("The latest photos.")
      .supportedFamilies([.systemSmall])
  }
}

struct PhotoEntryView: View {
  let entry: PhotoEntry

  var body: some View {
    Text(entry.title ?? "Open the app to load photos.")
      .containerBackground(for: .widget) {
        if let image = entry.image.flatMap({ Image($0) }) { image.resizable().scaledToFill() } else { Color.gray }
      }
  }
}
#endif

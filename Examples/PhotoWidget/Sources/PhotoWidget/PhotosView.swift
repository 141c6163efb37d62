#if canImport(WidgetKit)
import CacheUI
import SwiftUI
import WidgetKit

/// The view of the app: `PhotosView(photos: try SharedPhotos.open())`.
///
/// In Xcode, this file belongs to the target of the app, and `PhotoWidget.swift` to that of the extension. `PhotoTimeline.swift`
/// and `SharedPhotos.swift` belong to both. `main.swift` belongs to neither: it is the program of the Swift package, and a target
/// with a `main.swift` has no `@main`. In the app, write `@main` before the `App` whose window shows this view. In the extension,
/// write it before `PhotoWidget`.
struct PhotosView: View {
  let photos: SharedPhotos
  @State private var list: [Photo] = []
  @State private var failure: String?

  var body: some View {
    VStack {
      if let failure { Text(failure) }
      List(list) { photo in
        CachedImage(photo.image, label: Text(photo.title)) { image in
          image.resizable().scaledToFit()
        } placeholder: { _ in
          Color.gray
        }
        .downsampledToView()
        .frame(height: 200)
      }
    }
    .resourceManager(photos.manager)
    .task(id: photos.url) { await update() }
  }

  private func update() async {
    do throws(CacheError) {
      list = try await photos.update()
      failure = nil
      WidgetCenter.shared.reloadTimelines(ofKind: SharedPhotos.widgetKind)
    } catch {
      if !error.isCancellation { failure = "\(error)" }
    }
  }
}
#endif

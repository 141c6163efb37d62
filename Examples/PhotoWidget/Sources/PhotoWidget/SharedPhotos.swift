import CacheUI
import Foundation

/// A photo of the list that the server sends.
struct Photo: Codable, Hashable, Identifiable, Sendable {
  var id: Int
  var title: String
  var image: URL
}

/// The photos of the app and of its widget, in one folder of their app group.
///
/// Each process has its own manager. The app loads and stores. The widget reads what the app has stored, and sends no request.
struct SharedPhotos: Sendable {
  /// The size of the small widget on the largest display: 170 × 170 points with 3 pixels each.
  static let widgetSize = PixelSize(510, 510)

  /// The image of the widget. It is stored in this size, so that the widget never decodes a whole photograph.
  static let widgetImage = ResourceTransform.displayImage(
    .fill(widgetSize.width, widgetSize.height), scale: 3, storedAs: .automatic)

  private static let list = ResourceTransform<[Photo]>(id: "photo list", cost: { $0.count * 256 }) {
    body, _ throws(CacheError) in
    let data = try await body.collect()
    do {
      return try JSONDecoder().decode([Photo].self, from: data)
    } catch {
      throw CacheError(.decodingFailed, reason: "\(error)")
    }
  }

  /// The name by which the app reloads the widget.
  static let widgetKind = "Photos"

  let manager: ResourceManager
  let url: URL

  /// Opens the folder. Call ``close()`` in a process that does not need it all the time.
  ///
  /// - Parameters:
  ///   - container: The folder that `containerURL(forSecurityApplicationGroupIdentifier:)` returns.
  ///   - url: The URL of the list of photos.
  ///   - downloader: The downloader, or `nil` for the system's.
  init(container: URL, url: URL, downloader: (any Downloader)? = nil) throws(CacheError) {
    // The limit applies to the folder, so both processes have the same.
    let folder = container.appending(path: "Photos", directoryHint: .isDirectory)
    let configuration = try ResourceManager.Configuration.standard(
      folder: folder, diskLimit: 128 << 20, downloader: downloader)
    manager = ResourceManager(configuration)
    self.url = url
  }

  /// Ends the loads, and closes the folder.
  func close() async {
    await manager.close()
    await (manager.configuration.store as? DiskCache)?.close()
  }

  // MARK: The app

  /// Loads the list and stores the images for the widget. The app calls it when it appears, and in a background refresh.
  func update() async throws(CacheError) -> [Photo] {
    let photos = try await manager.load(url, as: Self.list).value
    _ = await manager.prefetch(photos.map(\.image), as: Self.widgetImage, into: .disk)
    return photos
  }

  // MARK: The widget

  /// Returns the stored list, or an empty one if none is stored.
  func storedPhotos() async -> [Photo] { await stored(url, as: Self.list) ?? [] }

  /// Returns a stored image, or `nil` if the app has not stored it or the folder has lost it.
  func storedImage(of photo: Photo) async -> DisplayImage? { await stored(photo.image, as: Self.widgetImage) }

  private func stored<Value>(_ url: URL, as transform: ResourceTransform<Value>) async -> Value? {
    await manager.cached(ResourceRequest(url), as: transform)?.value
  }
}

#if canImport(Darwin)
extension SharedPhotos {
  /// Opens the folder in the container of the app group. Both targets need the entitlement for it.
  static func open() throws(CacheError) -> SharedPhotos {
    let group = "group.com.example.photos"
    guard let container = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group),
      let url = URL(string: "https://api.example.com/photos.json")
    else { throw CacheError(.invalidConfiguration, reason: "no entitlement for the app group \(group)") }
    return try SharedPhotos(container: container, url: url)
  }
}
#endif

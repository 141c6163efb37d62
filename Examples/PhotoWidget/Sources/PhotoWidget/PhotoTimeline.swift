import CacheUI
import Foundation

/// The content of the widget from a point in time.
struct PhotoEntry: Sendable {
  var date: Date
  /// The title, or `nil` if nothing is stored.
  var title: String?
  /// The image, or `nil` for the placeholder.
  var image: DisplayImage?
}

/// The content of the widget for the next hours.
struct PhotoTimeline: Sendable {
  /// The largest number of entries. WidgetKit archives all images of a timeline at once.
  static let length = 4
  /// The time for which a photo is shown.
  static let interval: TimeInterval = 3_600
  /// The time after which the folder is read again if it had no image.
  static let retryInterval: TimeInterval = 900

  var entries: [PhotoEntry]
  /// The time of the next timeline. The app asks for one earlier when it has stored photos.
  var end: Date
}

extension PhotoTimeline {
  /// Shows the stored images, in the order of the list. Photos without an image are left out. If no image is stored, the only
  /// entry has the title of the first photo, if there is one.
  init(of photos: SharedPhotos, from start: Date) async {
    let list = await photos.storedPhotos()
    var entries: [PhotoEntry] = []
    for photo in list where entries.count < Self.length {
      guard let image = await photos.storedImage(of: photo) else { continue }
      let date = start.addingTimeInterval(Double(entries.count) * Self.interval)
      entries.append(PhotoEntry(date: date, title: photo.title, image: image))
    }
    if let last = entries.last {
      self.init(entries: entries, end: last.date.addingTimeInterval(Self.interval))
    } else {
      self.init(placeholder: list.first?.title, at: start)
    }
  }

  /// Shows no image, for a folder that is empty or cannot be opened, such as before the first unlock of the device.
  init(placeholder title: String? = nil, at date: Date) {
    self.init(entries: [PhotoEntry(date: date, title: title)], end: date.addingTimeInterval(Self.retryInterval))
  }

  /// Opens the folder, reads it, and closes it. A widget needs it only to make a timeline.
  static func make(from start: Date, opening photos: @Sendable () throws(CacheError) -> SharedPhotos) async -> PhotoTimeline {
    guard let photos = try? photos() else { return PhotoTimeline(at: start) }
    let timeline = await PhotoTimeline(of: photos, from: start)
    await photos.close()
    return timeline
  }
}

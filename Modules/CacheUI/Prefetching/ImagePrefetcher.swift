public import Etagere

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A prefetcher that loads and decodes the images of the next rows of a list. An ``ImageModel`` with the same processor
/// and scale then finds them in memory.
///
/// ```swift
/// let prefetcher = ImagePrefetcher(.fill(96, 96), scale: 2)
/// prefetcher.rowAppeared(row, of: urls)  // each row, as it appears
/// ```
///
/// Prefetches have a low priority. They share their transfer with views that load the same image.
@MainActor
public final class ImagePrefetcher {
  private let distance: Int
  private let prefetcher: Prefetcher
  private let options: RequestOptions
  private var lastRow: Int?
  /// The prefetched URLs, by row.
  private var window: [Int: URL] = [:]

  /// Creates a prefetcher.
  ///
  /// - Parameters:
  ///   - processor: The steps that change the images, as in the views.
  ///   - scale: The number of pixels per point, as in the views.
  ///   - distance: The number of rows that ``rowAppeared(_:of:)`` prefetches. With zero or less, it prefetches none.
  ///   - concurrency: The number of loads that run at the same time, at least 1. With a lower number, nothing is prefetched.
  ///   - options: The options of the loads, as in the views.
  ///   - manager: The manager of the views.
  public init(
    _ processor: ImageProcessor = .none, scale: Double = 1, distance: Int = 10, concurrency: Int = 4,
    options: RequestOptions = RequestOptions(), manager: ResourceManager = .shared
  ) {
    var options = options
    options.policy = options.policy ?? manager.imagePolicy
    self.options = options
    self.distance = max(0, distance)
    prefetcher = manager.prefetcher(as: .displayImage(processor, scale: scale), concurrency: concurrency)
  }

  /// Prefetches images in the given order.
  public func prefetch(_ urls: [URL]) { prefetcher.append(urls, options: options) }

  /// Cancels the prefetches of images. A transfer that a view also waits for continues.
  public func cancel(_ urls: [URL]) { prefetcher.cancel(urls) }

  /// Prefetches the images of the rows after `row`, in the scroll direction. Cancels the prefetches of rows that are
  /// further away.
  ///
  /// - Parameters:
  ///   - row: The row that appears.
  ///   - urls: The URLs of all rows, with `nil` for rows without an image.
  public func rowAppeared(_ row: Int, of urls: [URL?]) {
    let isForward = row >= (lastRow ?? row)
    lastRow = row
    let near = (row - distance..<row + distance + 1).clamped(to: urls.indices)
    let far = window.filter { !near.contains($0.key) }
    for row in far.keys { window[row] = nil }
    let kept = Set(window.values)
    cancel(far.values.filter { !kept.contains($0) })

    let next = isForward ? Array(near.filter { $0 > row }) : near.filter { $0 < row }.reversed()
    var urlsToLoad: [URL] = []
    for row in next where window[row] == nil || window[row] != urls[row] {
      guard let url = urls[row] else { continue }
      window[row] = url
      urlsToLoad.append(url)
    }
    if !urlsToLoad.isEmpty { prefetch(urlsToLoad) }
  }
}

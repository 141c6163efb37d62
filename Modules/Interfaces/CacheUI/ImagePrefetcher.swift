public import Etagere

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A prefetcher that loads and decodes the images of the next rows of a list. An ``ImageModel`` with the same transform
/// then finds them in memory.
///
/// ```swift
/// let prefetcher = ImagePrefetcher(.covering(width: 96, height: 96, scale: 2), scale: 2)
/// prefetcher.rowAppeared(row, of: urls)  // each row, as it appears
/// ```
///
/// The processor above is that of a view of 96 × 96 points with `downsampledToView()`. Prefetches have a low priority. They
/// share their transfer with views that load the same image.
@MainActor
public final class ImagePrefetcher {
  private let distance: Int
  private let prefetcher: Prefetcher
  private let options: RequestOptions
  private let policy: LoadPolicy
  private var lastRow: Int?
  /// The prefetched requests, by row.
  private var window: [Int: ResourceRequest] = [:]
  /// Whether a row that has appeared is being handled. A row that a closure of the app reports meanwhile waits.
  private var isUpdating = false
  private var waiting: [Appearance] = []

  /// The prefetches for a row that has appeared.
  private struct Appearance {
    /// The rows around it whose prefetches continue.
    let near: Range<Int>
    let requests: [(row: Int, request: ResourceRequest)]
  }

  /// Creates a prefetcher of images that a transform makes.
  ///
  /// ```swift
  /// let prefetcher = ImagePrefetcher(as: .displayImage(.covering(PixelSize(192, 192)), scale: 2, storedAs: .automatic))
  /// ```
  ///
  /// - Parameters:
  ///   - transform: The transform of the views.
  ///   - distance: The number of rows that ``rowAppeared(_:of:)`` prefetches. With zero or less, it prefetches none.
  ///   - concurrency: The number of loads that run at the same time, at least 1. With a lower number, nothing is prefetched.
  ///   - options: The options of the loads of URLs, as in the views. Requests have their own.
  ///   - manager: The manager of the views.
  public init(
    as transform: ResourceTransform<DisplayImage>, distance: Int = 10, concurrency: Int = 4,
    options: RequestOptions = RequestOptions(), manager: ResourceManager = .shared
  ) {
    self.options = options
    // A list has fewer rows, and sums with a row do not overflow.
    self.distance = min(max(0, distance), 1 << 24)
    policy = manager.imagePolicy
    prefetcher = manager.prefetcher(as: transform, concurrency: concurrency)
  }

  /// Creates a prefetcher of images that a processor changes: one with the transform `displayImage(_:scale:)`.
  ///
  /// - Parameters:
  ///   - processor: The steps that change the images, as in the views.
  ///   - scale: The number of pixels per point, as in the views.
  ///   - distance: The number of rows that ``rowAppeared(_:of:)`` prefetches. With zero or less, it prefetches none.
  ///   - concurrency: The number of loads that run at the same time, at least 1. With a lower number, nothing is prefetched.
  ///   - options: The options of the loads of URLs, as in the views. Requests have their own.
  ///   - manager: The manager of the views.
  public convenience init(
    _ processor: ImageProcessor = .none, scale: Double = 1, distance: Int = 10, concurrency: Int = 4,
    options: RequestOptions = RequestOptions(), manager: ResourceManager = .shared
  ) {
    self.init(
      as: .displayImage(processor, scale: scale), distance: distance, concurrency: concurrency, options: options,
      manager: manager)
  }

  /// Prefetches images in the given order. Requests that are not a GET, or have a body, are skipped, because views do not load
  /// them.
  @_disfavoredOverload  // An empty array literal means URLs.
  public func prefetch(_ requests: [ResourceRequest]) {
    prefetcher.append(
      requests.filter(\.isPlainGet).map { request in
        var request = request
        request.options.policy = request.options.policy ?? policy
        return request
      })
  }

  /// Prefetches the images of URLs in the given order.
  public func prefetch(_ urls: [URL]) { prefetch(urls.map(request)) }

  /// Cancels the prefetches of these requests. Requests with other fields, another `key` or another `partition` continue. A
  /// transfer that a view also waits for continues, too.
  @_disfavoredOverload  // An empty array literal means URLs.
  public func cancel(_ requests: [ResourceRequest]) { prefetcher.cancel(requests) }

  /// Cancels the prefetches of URLs, which have the options of the prefetcher.
  public func cancel(_ urls: [URL]) { cancel(urls.map(request)) }

  /// Prefetches the images of the rows after `row`, in the scroll direction. Cancels the prefetches of rows that are
  /// further away.
  ///
  /// - Parameters:
  ///   - row: The row that appears.
  ///   - urls: The URLs of all rows, with `nil` for rows without an image.
  public func rowAppeared(_ row: Int, of urls: [URL?]) {
    rowAppeared(row, of: urls.count) { urls[$0].map(request) }
  }

  /// Prefetches the images of the rows after `row`, as ``rowAppeared(_:of:)`` does for URLs.
  ///
  /// ```swift
  /// let prefetcher = ImagePrefetcher(as: .displayImage(scale: 2))
  /// prefetcher.rowAppeared(row, of: urls.count) { ResourceRequest(urls[$0], options: options) }
  /// ```
  ///
  /// - Parameters:
  ///   - row: The row that appears.
  ///   - count: The number of rows.
  ///   - request: A closure that returns the request of a row, as in the views, or `nil` for a row without an image. It is called
  ///     for the rows that are near, during this call. If it reports another row, the prefetches of that row follow.
  public func rowAppeared(_ row: Int, of count: Int, request: (_ row: Int) -> ResourceRequest?) {
    let isForward = row >= (lastRow ?? row)
    lastRow = row
    let near = (row - distance..<row + distance + 1).clamped(to: 0..<max(0, count))
    let next = isForward ? Array(near.filter { $0 > row }) : near.filter { $0 < row }.reversed()
    // The closure, and an observer of the loads that `update` starts and cancels, may report another row.
    let isNested = isUpdating
    isUpdating = true
    let appearance = Appearance(near: near, requests: next.compactMap { row in request(row).map { (row, $0) } })
    if isNested { return waiting.append(appearance) }
    update(appearance)
    while !waiting.isEmpty { update(waiting.removeFirst()) }
    isUpdating = false
  }

  private func update(_ appearance: Appearance) {
    let far = window.filter { !appearance.near.contains($0.key) }
    for row in far.keys { window[row] = nil }
    let kept = Set(window.values.map(prefetcher.identity))
    cancel(far.values.filter { !kept.contains(prefetcher.identity(of: $0)) })

    let new = appearance.requests.filter { row, request in
      window[row].map { prefetcher.identity(of: $0) != prefetcher.identity(of: request) } ?? true
    }
    for (row, request) in new { window[row] = request }
    if !new.isEmpty { prefetch(new.map(\.request)) }
  }

  private func request(_ url: URL) -> ResourceRequest { ResourceRequest(url, options: options) }
}

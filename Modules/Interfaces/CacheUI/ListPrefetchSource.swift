#if canImport(UIKit) && !os(watchOS)
public import Etagere
public import Foundation
public import UIKit

/// An adapter that connects an ``ImagePrefetcher`` to a collection view or a table view.
///
/// ```swift
/// source = ListPrefetchSource(prefetcher) { [weak self] in self?.photos[$0.item].url }
/// collectionView.prefetchDataSource = source  // held weakly by the view
/// ```
@MainActor
public final class ListPrefetchSource: NSObject, UICollectionViewDataSourcePrefetching, UITableViewDataSourcePrefetching {
  private let prefetch: ([IndexPath]) -> Void
  private let cancel: ([IndexPath]) -> Void

  /// Creates a source of URLs.
  ///
  /// - Parameters:
  ///   - prefetcher: The prefetcher that loads the images.
  ///   - url: A closure that returns the URL of an item's image, or `nil` if the item has no image. The source retains it, so it
  ///     must not capture the view controller that owns the source strongly.
  public init(_ prefetcher: ImagePrefetcher, url: @escaping (IndexPath) -> URL?) {
    prefetch = { prefetcher.prefetch($0.compactMap(url)) }
    cancel = { prefetcher.cancel($0.compactMap(url)) }
  }

  /// Creates a source of requests.
  ///
  /// - Parameters:
  ///   - prefetcher: The prefetcher that loads the images.
  ///   - request: A closure that returns the request of an item's image, as in the views, or `nil` if the item has no image. The
  ///     source retains it, so it must not capture the view controller that owns the source strongly.
  @_disfavoredOverload  // A closure that returns nothing but `nil` means URLs.
  public init(_ prefetcher: ImagePrefetcher, request: @escaping (IndexPath) -> ResourceRequest?) {
    prefetch = { prefetcher.prefetch($0.compactMap(request)) }
    cancel = { prefetcher.cancel($0.compactMap(request)) }
  }

  public func collectionView(_ collectionView: UICollectionView, prefetchItemsAt indexPaths: [IndexPath]) {
    prefetch(indexPaths)
  }

  public func collectionView(_ collectionView: UICollectionView, cancelPrefetchingForItemsAt indexPaths: [IndexPath]) {
    cancel(indexPaths)
  }

  public func tableView(_ tableView: UITableView, prefetchRowsAt indexPaths: [IndexPath]) {
    prefetch(indexPaths)
  }

  public func tableView(_ tableView: UITableView, cancelPrefetchingForRowsAt indexPaths: [IndexPath]) {
    cancel(indexPaths)
  }
}
#endif

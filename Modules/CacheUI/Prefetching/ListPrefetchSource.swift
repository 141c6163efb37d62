#if canImport(UIKit) && !os(watchOS)
public import Foundation
public import UIKit

/// An adapter that connects an ``ImagePrefetcher`` to a collection view or a table view.
///
/// ```swift
/// source = ListPrefetchSource(prefetcher) { [photos] in photos[$0.item].url }
/// collectionView.prefetchDataSource = source  // held weakly by the view
/// ```
@MainActor
public final class ListPrefetchSource: NSObject, UICollectionViewDataSourcePrefetching, UITableViewDataSourcePrefetching {
  private let prefetcher: ImagePrefetcher
  private let url: (IndexPath) -> URL?

  /// Creates a source.
  ///
  /// - Parameters:
  ///   - prefetcher: The prefetcher that loads the images.
  ///   - url: A closure that returns the URL of an item's image, or `nil` if the item has no image. The source retains it, so it
  ///     must not capture the view controller that owns the source.
  public init(_ prefetcher: ImagePrefetcher, url: @escaping (IndexPath) -> URL?) {
    self.prefetcher = prefetcher
    self.url = url
  }

  public func collectionView(_ collectionView: UICollectionView, prefetchItemsAt indexPaths: [IndexPath]) {
    prefetcher.prefetch(indexPaths.compactMap(url))
  }

  public func collectionView(_ collectionView: UICollectionView, cancelPrefetchingForItemsAt indexPaths: [IndexPath]) {
    prefetcher.cancel(indexPaths.compactMap(url))
  }

  public func tableView(_ tableView: UITableView, prefetchRowsAt indexPaths: [IndexPath]) {
    prefetcher.prefetch(indexPaths.compactMap(url))
  }

  public func tableView(_ tableView: UITableView, cancelPrefetchingForRowsAt indexPaths: [IndexPath]) {
    prefetcher.cancel(indexPaths.compactMap(url))
  }
}
#endif

#if canImport(SwiftUI)
import CacheCore
import SwiftUI

/// A list with pull to refresh.
struct FeedView: View {
  let feed: ArticleFeed
  @State private var snapshot: FeedSnapshot?
  @State private var failure: String?

  var body: some View {
    List(snapshot?.articles ?? []) { article in Text(article.title) }
      .overlay(alignment: .bottom) { banner }
      .task { await load() }
      .refreshable { await refresh() }
  }

  @ViewBuilder private var banner: some View {
    if let failure {
      Text("Not loaded: \(failure)")
    } else if case .offline(let reason)? = snapshot?.state {
      Text("Offline: \(reason)")
    }
  }

  private func load() async {
    do throws(CacheError) {
      for try await snapshot in feed.snapshots() { (self.snapshot, failure) = (snapshot, nil) }
    } catch {
      show(error)
    }
  }

  private func refresh() async {
    do throws(CacheError) {
      (snapshot, failure) = (try await feed.refresh(), nil)
    } catch {
      show(error)
    }
  }

  private func show(_ error: CacheError) {
    // A load is cancelled when its view disappears.
    if !error.isCancellation { failure = "\(error)" }
  }
}
#endif

import CacheTesting
import Etagere
import Foundation
import Testing

@testable import JSONClient

@Suite("The article feed, from a folder of fixtures")
struct FixtureFolderTests {
  @Test("articles come from a file, which is revalidated as long as it does not change")
  func fixture() async throws {
    // `https://api.example.com/articles.json` is the file `articles.json` in the folder.
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures")
    let origin = LocalFileDownloader(folder: folder)
    var configuration = try ResourceManager.Configuration.standard(folder: nil)
    configuration.downloader = origin
    let url = try #require(URL(string: "https://api.example.com/articles.json"))
    let feed = ArticleFeed(manager: ResourceManager(configuration), url: url)

    let first = try await feed.refresh()
    #expect(first.articles.map(\.title) == ["Noon", "Dawn"])
    #expect(try await feed.refresh() == first)
    #expect(origin.requests.count == 2)
    #expect(origin.requests.last?.headerFields[.ifNoneMatch] != nil)

    origin.isOffline = true
    let offline = try await feed.refresh()
    #expect(offline.articles == first.articles)
    guard case .offline = offline.state else {
      Issue.record("the state is \(offline.state)")
      return
    }
  }
}

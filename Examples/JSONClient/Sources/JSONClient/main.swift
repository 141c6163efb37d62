// A client of a JSON API with pull to refresh, and with cached articles when it is offline.
// `swift run --package-path Examples/JSONClient JSONClient`
import CacheTesting
import Etagere
import Foundation

// A scripted origin in place of a server. A real client omits it: `standard(folder:)` loads from the network.
let origin = ScriptedDownloader()
guard let url = URL(string: "https://api.example.com/articles") else { exit(70) }  // EX_SOFTWARE
origin.respond(
  to: url, with: .ok(#"[{"id": 1, "title": "Dawn"}]"#, etag: "\"1\"", cacheControl: "max-age=0"), .notModified(),
  .ok(#"[{"id": 2, "title": "Noon"}, {"id": 1, "title": "Dawn"}]"#, etag: "\"2\"", cacheControl: "max-age=0"),
  .failure(.offline, reason: "no network"))

func show(_ snapshot: FeedSnapshot) {
  print("  \(snapshot.articles.map(\.title).joined(separator: ", ")) (\(snapshot.state))")
}

do {
  var configuration = try ResourceManager.Configuration.standard(folder: nil)
  configuration.downloader = origin
  let feed = ArticleFeed(manager: ResourceManager(configuration), url: url)

  print("The first screen")
  for try await snapshot in feed.snapshots() { show(snapshot) }
  print("Pull to refresh: nothing has changed")
  show(try await feed.refresh())
  print("The screen appears again: cached articles first")
  for try await snapshot in feed.snapshots() { show(snapshot) }
  print("Pull to refresh without a network")
  show(try await feed.refresh())
  try origin.verify()
} catch {
  try? FileHandle.standardError.write(contentsOf: Data("failed: \(error)\n".utf8))
  exit(1)
}

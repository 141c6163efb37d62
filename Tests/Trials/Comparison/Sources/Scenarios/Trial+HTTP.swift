#if Origin
import Foundation
import HTTPTypes
import LoopbackOrigin

/// Revalidation, variants, and an origin that cannot be reached.
extension Trial {
  func unchanged(restarts: Bool) throws -> Finding {
    let image = TestImage.png(1)
    serve("/image", image, etag: "v1", cacheControl: "no-cache")
    var loader = try open()
    if let failure = try prepare(loader, "/image", image) { return failure }
    if restarts { loader = try reopen(loader) }
    let reply = try loader.load(origin.url("/image"))
    guard gave(reply, image) else { return .fails(reply.error == nil ? "a wrong image" : "an error") }
    let seen = origin.counters(for: "/image")
    if seen.requests == 1 { return .fails("no request: the stored image without revalidation") }
    return seen.notModified == 1 ? .passes("304") : .fails("the whole image again")
  }

  func changed() throws -> Finding {
    let (old, new) = (TestImage.png(1), TestImage.png(2))
    serve("/image", old, etag: "v1", cacheControl: "no-cache")
    let loader = try open()
    if let failure = try prepare(loader, "/image", old) { return failure }
    serve("/image", new, etag: "v2", cacheControl: "no-cache")
    let reply = try loader.load(origin.url("/image"))
    if gave(reply, new) { return .passes("the new image") }
    return .fails(gave(reply, old) ? "the old image" : "no image")
  }

  func vary() throws -> Finding {
    let images = ["de": TestImage.png(1), "fr": TestImage.png(2)]
    let answers = images.mapValues {
      answer($0, etag: nil, cacheControl: "max-age=3600", vary: "Accept-Language")
    }
    origin.setRoute(
      "/image",
      Route { request in answers[request.fields[.acceptLanguage] ?? ""] ?? OriginResponse(status: .badRequest) })
    let loader = try open()
    for language in ["de", "fr", "de", "fr"] {
      let reply = try loader.load(origin.url("/image"), fields: ["Accept-Language": language])
      guard let image = images[language], gave(reply, image) else {
        return .fails(reply.error == nil ? "the image of the other language" : "an error")
      }
    }
    return origin.counters(for: "/image").requests == 2
      ? .passes("correct, each transferred once") : .fails("correct, but transferred again")
  }

  func offline() async throws -> Finding {
    let image = TestImage.png(1)
    serve("/image", image, etag: "v1", cacheControl: "max-age=0")
    var loader = try open()
    if let failure = try prepare(loader, "/image", image) { return failure }
    loader = try reopen(loader)
    await origin.stop()
    let reply = try loader.load(origin.url("/image"))
    if gave(reply, image) { return .passes("the stored image") }
    return .fails(reply.error == nil ? "a wrong image" : "an error")
  }

  func fresh() throws -> Finding {
    let image = TestImage.png(1)
    serve("/image", image, etag: "v1", cacheControl: "max-age=3600")
    var loader = try open()
    if let failure = try prepare(loader, "/image", image) { return failure }
    loader = try reopen(loader)
    let reply = try loader.load(origin.url("/image"))
    guard gave(reply, image) else { return .fails(reply.error == nil ? "a wrong image" : "an error") }
    let seen = origin.counters(for: "/image")
    if seen.requests == 1 { return .passes("no request") }
    return .fails(seen.notModified == 1 ? "a request, 304" : "the whole image again")
  }

  func cut() throws -> Finding {
    let image = TestImage.png(1)
    let half = OriginDelivery.fault(.cut(afterBodyBytes: image.count / 2))
    origin.setRoute(
      "/image",
      Route(inTurn: [
        answer(image, etag: "v1", cacheControl: "max-age=3600", delivery: half),
        answer(image, etag: "v1", cacheControl: "max-age=3600"),
      ]))
    var loader = try open()
    let first = try loader.load(origin.url("/image"))
    guard first.error != nil || gave(first, image) else { return .fails("half an image as a success") }
    let second = try loader.load(origin.url("/image"))
    guard gave(second, image) else { return .fails("the next load does not give the image") }
    loader = try reopen(loader)
    guard gave(try loader.load(origin.url("/image")), image) else { return .fails("half an image after a restart") }
    guard first.error == nil else { return .passes("an error, the next load gives the image") }
    let isResumed = origin.requests(for: "/image").contains { $0.fields[.range] != nil }
    return .passes(isResumed ? "the image in one load, the rest by `Range`" : "the image in one load, transferred again")
  }
}
#endif

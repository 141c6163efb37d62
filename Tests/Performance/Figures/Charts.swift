/// The charts of the documentation.
enum Charts {
  static let all = [screen, hits, engines, limits, memory, disk, images, gateway]

  /// The chart of the README.
  private static let screen = Chart(
    name: "performance-screen", title: "Time to load a screen of 50 images",
    subtitle: "40 KB each, 6 open connections, a simulated link of 10 Mbit/s with 20 ms of latency each way",
    groups: [
      .init(
        nil,
        [
          .init("async-http-client, no cache", Key("screen", "async-http-client, no cache", "time"), isPeer: true),
          .init("Etagere: nothing cached", Key("screen", "Etagere, nothing cached", "time")),
          .init("Etagere: stale, confirmed by 304s", Key("screen", "Etagere, stale and unchanged", "time")),
          .init("Etagere: fresh, from disk", Key("screen", "Etagere, fresh on disk", "time")),
          .init("Etagere: fresh, from memory", Key("screen", "Etagere, fresh in memory", "time")),
        ])
    ])

  private static let hits = Chart(
    name: "performance-hits", title: "Cost of a hit",
    subtitle: "20 KB through ResourceManager; in memory the processor time, on disk the elapsed time",
    groups: [
      .init(
        "In memory",
        [
          .init("cachedInMemory, synchronous", Key("facade", "memory, synchronous", "processor time")),
          .init("load, async", Key("facade", "memory, async", "processor time")),
        ]),
      .init(
        "On disk",
        [
          .init("open, fstat, read, close", Key("facade", "disk", "system calls"), isPeer: true),
          .init("DiskCache, synchronous work", Key("facade", "disk", "synchronous")),
          .init("DiskCache, async", Key("facade", "disk", "asynchronous")),
          .init("load, async", Key("facade", "disk", "load")),
        ]),
    ])

  private static let engines = Chart(
    name: "performance-engines", title: "Requests per second that miss the cache",
    subtitle: "1,000 responses of 20 KB from nginx, 6 at a time, as a ratio to the library below the engine; more is better",
    reference: (1, "the library alone = 1"),
    groups: ["AsyncHTTPNetworking", "CacheNetworking"].map { engine in
      .init(
        engine == "CacheNetworking" ? "CacheNetworking / URLSession" : "AsyncHTTPNetworking / async-http-client",
        [
          .init("the engine alone", Key("small", "\(engine) alone", "rate / peer")),
          .init("ResourceManager, no store", Key("small", "\(engine), ResourceManager without a store", "rate / peer")),
          .init("ResourceManager, memory store", Key("small", "\(engine), ResourceManager", "rate / peer")),
        ])
    })

  private static let limits = Chart(
    name: "performance-limits", title: "Time against the limits of the link",
    subtitle: "AsyncHTTPNetworking, as a ratio to the minimum that bytes or round trips need; less is better",
    reference: (1, "minimum = 1"),
    groups: [
      .init(
        "56 stale resources, revalidated in 10 round trips of 10 ms",
        [
          .init("6 at a time", Key("stale", "AsyncHTTPNetworking, 6 at a time", "time / minimum")),
          .init("all at once", Key("stale", "AsyncHTTPNetworking, all at once", "time / minimum")),
        ]),
      .init(
        "Three photographs, 1.53 MB over 2 Mbit/s",
        [
          .init("together", Key("link", "AsyncHTTPNetworking, together", "time / minimum")),
          .init("one by one", Key("link", "AsyncHTTPNetworking, one by one", "time / minimum")),
          .init(
            "cut at half, resumed", Key("link", "AsyncHTTPNetworking, one by one, third cut at 50 %, resuming", "time / minimum")),
          .init(
            "cut at half, retried", Key("link", "AsyncHTTPNetworking, one by one, third cut at 50 %, retrying", "time / minimum")),
        ]),
    ])

  private static let memory = Chart(
    name: "performance-memory", title: "MemoryCache against a dictionary",
    subtitle: "Time of an operation as a ratio to a FIFO dictionary with one mutex; less is better",
    reference: (1, "dictionary = 1"),
    groups: [
      .init(
        nil,
        [
          .init("hit, ready key", Key("memory", "hit, ready key", "time / dictionary")),
          .init("hit, key from a string", Key("memory", "hit, key from a string", "time / dictionary")),
          .init("miss", Key("memory", "miss", "time / dictionary")),
          .init("insert, new", Key("memory", "insert, new", "time / dictionary")),
          .init("insert, replacing", Key("memory", "insert, replacing", "time / dictionary")),
          .init("insert, evicting", Key("memory", "insert, evicting", "time / dictionary")),
        ])
    ])

  private static let disk = Chart(
    name: "performance-disk", title: "DiskCache against bare system calls",
    subtitle: "Time of the store's synchronous work as a ratio to open, read or write, close and rename; less is better",
    reference: (1, "system calls = 1"),
    groups: [
      .init(
        nil,
        [
          .init("read, 4 KB", Key("disk", "read, 4 KB", "synchronous / system calls")),
          .init("read, 20 KB", Key("disk", "read, 20 KB", "synchronous / system calls")),
          .init("read, 1 MB", Key("disk", "read, 1 MB", "synchronous / system calls")),
          .init("read without checksum, 1 MB", Key("disk", "read, unchecked, 1 MB", "synchronous / system calls")),
          .init("write, 20 KB", Key("disk", "write, 20 KB", "synchronous / system calls")),
          .init("write with fsync, 20 KB", Key("disk", "write, flushed, 20 KB", "synchronous / system calls")),
          .init("remove, 20 KB", Key("disk", "remove, 20 KB", "synchronous / system calls")),
          .init("miss", Key("disk", "miss, 20 KB", "synchronous / system calls")),
        ])
    ])

  private static let images = Chart(
    name: "performance-images", title: "A JPEG of 12 megapixels at 400 pixels",
    subtitle: "Time of a load by ResourceManager, from the source of the image",
    groups: [
      .init(
        nil,
        [
          .init("processed from the original on disk", Key("images-variants", "processed from the original on disk", "load")),
          .init("cached on disk as WebP, decoded", Key("images-variants", "disk, WebP", "load")),
          .init("cached on disk as JPEG, decoded", Key("images-variants", "disk, JPEG", "load")),
          .init("cached on disk as WebP, not decoded", Key("images-variants", "disk, WebP, not decoded", "load")),
          .init("cached in memory", Key("images-variants", "memory", "load")),
        ])
    ])

  private static let gateway = Chart(
    name: "performance-gateway", title: "The gateway against nginx",
    subtitle: "Requests per second for 20 KB over 64 connections, as a ratio to nginx; more is better",
    reference: (1, "nginx = 1"),
    groups: [
      .init(
        nil,
        [
          .init("hit in memory", Key("gateway", "hits, gateway", "rate / nginx")),
          .init("revalidated, 20 KB sent", Key("gateway", "revalidated, gateway", "rate / nginx")),
          .init("no cache", Key("gateway", "passed, gateway without a cache", "rate / nginx")),
        ])
    ])
}

import CacheUI
import SwiftUI

struct Avatar: View {
  let url: URL?

  var body: some View {
    CachedImage(url, label: Text("Avatar")) { image in
      image.resizable().scaledToFill()
    } placeholder: { _ in
      Color.gray.opacity(0.3)
    }
    .downsampledToView()
    .processed(by: .circle)
    .frame(width: 48, height: 48)
  }
}

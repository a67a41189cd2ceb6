// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// Writes u.data and u.item in the form of MovieLens 100K: made-up users, who like some genres more than others.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <vector>

int main() {
    constexpr int users = 943, films = 1682, genres = 19;
    std::mt19937 engine{1};
    std::normal_distribution<float> normal;

    std::vector<float> kindness(users), quality(films);
    std::vector<std::vector<float>> taste(users), is_of(films);
    for (int user = 0; user < users; ++user) {
        kindness[user] = normal(engine);
        for (int genre = 0; genre < genres; ++genre)
            taste[user].push_back(normal(engine));
    }
    std::ofstream u_item{"u.item"};  // id|title|date|video date|link|19 flags, one for each genre
    for (int film = 0; film < films; ++film) {
        quality[film] = normal(engine);
        u_item << film + 1 << "|Film " << film + 1 << "|||";
        for (int genre = 0; genre < genres; ++genre) {
            is_of[film].push_back(engine() % 10 == 0 ? 1.0F : 0.0F);
            u_item << '|' << is_of[film].back();
        }
        u_item << '\n';
    }
    std::ofstream u_data{"u.data"};  // user, film, stars, time
    for (int i = 0; i < 100'000; ++i) {
        const auto user = engine() % users, film = engine() % films;
        float stars = 3.5F + 0.5F * kindness[user] + 0.6F * quality[film] + 0.4F * normal(engine);
        for (int genre = 0; genre < genres; ++genre)
            stars += 0.3F * taste[user][genre] * is_of[film][genre];
        u_data << user + 1 << '\t' << film + 1 << '\t' << std::clamp(std::lround(stars), 1L, 5L) << '\t' << i << '\n';
    }
}

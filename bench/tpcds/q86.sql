SELECT sum(ws_net_paid) AS paid, i_category, i_class,
    grouping(i_category) + grouping(i_class) AS lochierarchy,
    rank() OVER (
        PARTITION BY grouping(i_category) + grouping(i_class),
            CASE WHEN grouping(i_class) = 0 THEN i_category END
        ORDER BY sum(ws_net_paid) DESC
    ) AS rank_within_parent
FROM web_sales, date_dim, item
WHERE d_month_seq BETWEEN 1224 AND 1235 AND d_date_sk = ws_sold_date_sk AND i_item_sk = ws_item_sk
GROUP BY ROLLUP (i_category, i_class)
ORDER BY lochierarchy DESC, i_category, rank_within_parent
LIMIT 100
